"""The file of a Redis server that was killed (`appendonly`): what is half written at its end is cut off before a start.

Redis itself cuts a torn file behind the last whole command, also where that lies inside a transaction (seen with 6.2.14
and 7.0.15, not with Valkey 9.1). The next death then costs everything that it answered after its restart: all of that
stands behind a MULTI without its EXEC, and is cut off with it. So the transaction is cut off here, as a whole: nobody
was ever answered for it.

Rule 1: the server's own checker finds the place: the program beside it, or the server itself under that name.
Rule 2: only an end that is missing is cut off. What is damaged elsewhere is left as it is: Redis refuses it.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Final

_CHECKERS: Final = ("redis-check-aof", "valkey-check-aof")
_FOUND: Final = re.compile(r"AOF analyzed: (?:filename=(\S+), )?size=(\d+), ok_up_to=(\d+)")
_WRONG: Final = re.compile(r"^0x\s*([0-9a-f]+): (.*)", re.MULTILINE)
_NO_END: Final = ("Expected to read", "Reached EOF before reading EXEC")
_SHORT: Final = 32
"""Bytes: what is wrong so near to the end is a number that was cut."""
_LONGEST_S: Final = 600.0


def cut_torn_end(server: Path, folder: Path) -> int:
    """The bytes that were cut off; 0: the file is whole, is not there, or is wrong in another way."""
    listed = folder / "appendonlydir" / "appendonly.aof.manifest"  # since Redis 7 there are several files
    file = listed if listed.exists() else folder / "appendonly.aof"
    if not file.exists():
        return 0
    beside = [server.with_name(name) for name in _CHECKERS if server.with_name(name).exists()]
    done = subprocess.run(  # noqa: S603 - the server that is about to be started
        [_CHECKERS[0], str(file)], executable=beside[0] if beside else server, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, errors="replace", timeout=_LONGEST_S, check=False,
    )  # fmt: skip
    found = list(_FOUND.finditer(done.stdout))
    if done.returncode == 0 or not found:
        return 0
    name, size, whole = found[-1][1], int(found[-1][2]), int(found[-1][3])
    wrong = [(int(one[1], 16), one[2]) for one in _WRONG.finditer(done.stdout)]
    if not all(reason.startswith(_NO_END) or size - place < _SHORT for place, reason in wrong):
        return 0
    with (file.parent / (name or file.name)).open("r+b") as torn:
        torn.truncate(whole)
        os.fsync(torn.fileno())
    return size - whole
