"""Where the processes of a run come from: one process that has loaded everything once, and forks.

A process of the service needs a second of work before its first line, all of it for loading the same modules. So the
runner starts a nursery, `python -m joinery.cli.nursery`, and asks it for every process, also for those that take the
place of others. A nursery has one thread and no connections, which is what makes forking safe; the runner has both.

Rule 1: there is one nursery per process that starts others, whatever number of runs it has. It ends with its owner,
        however that ends, and with it all that it started (`--with-parent`). If it dies, the next process is asked of
        another one.
Rule 2: what it starts is as if it had been started by `python -m MODULE`: a session of its own, the owner's
        output and folder and environment as they are at that moment, its own words in the list of processes.
Rule 3: nobody waits for ever for one that stands still (SIGSTOP): who of its children has ended is seen without it, and
        when a process is asked of it, it is killed, as if it had died.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from joinery.model.errors import TryAgain, UserMustAct

ROLES: Final = ("gateway", "collector", "worker")
NO_FORK_HANDLERS: Final = ("GRPC_ENABLE_FORK_SUPPORT", "0")
"""gRPC looks after forks of a process that serves, and one in twenty children died of it before it was another program:
the lookup application starts its Java so. Who forks here uses gRPC only after the fork, and needs none of that."""
_LOOK_S: Final = 0.2
_CLOSE_S: Final = 5.0
_STILL_S: Final = 5.0
"""How long a nursery that was asked for a process may stand still."""
_POLL_S: Final = 0.01
_LARGEST: Final = 1 << 17
"""Bytes of a request: words and environment."""
_ROOM: Final = "-" * 3000
"""Last word of a nursery's command: where the words of a process that it starts are put (`_rename`)."""


class Born:
    """A process that a nursery has started; as `subprocess.Popen`, as far as we need it."""

    def __init__(self, nursery: "Nursery", pid: int) -> None:
        self._nursery, self.pid = nursery, pid

    def poll(self) -> int | None:
        """How it ended; None: it has not."""
        return self._nursery.ended(self.pid)

    def wait(self, seconds: float) -> int:
        """Until it has ended; `subprocess.TimeoutExpired` if that takes longer."""
        until = time.monotonic() + seconds
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(str(self.pid), seconds)
            time.sleep(_POLL_S)
        return code

    def send(self, number: signal.Signals) -> None:
        """A signal, if it is still there."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Nursery:
    """The owner's side; from any thread."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _LARGEST)
        self._lock = threading.Lock()
        self._codes: dict[int, int] = {}
        self._there: set[int] = set()
        self._asked = 0
        self.is_gone = False
        self.owner = os.getpid()
        words = [sys.executable, "-m", __name__, str(self.owner), str(theirs.fileno()), _ROOM]
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - ourselves
                words, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),), start_new_session=True
            )
        self.pid = self._process.pid

    def start(self, module: str, words: Sequence[str], environment: Mapping[str, str]) -> Born:
        """A new process (rule 2); `TryAgain` if it is gone, or the machine has no room for one more."""
        flags, folder = [*words, "--with-parent", str(self.pid)], os.getcwd()
        with self._lock:
            self._asked += 1
            request = {"number": self._asked, "module": module, "words": flags, "folder": folder}
            data = json.dumps({**request, "environment": dict(environment)}).encode()
            if len(data) > _LARGEST:
                raise UserMustAct(f"found {len(data)} bytes of flags and environment, wanted at most {_LARGEST}")
            try:
                socket.send_fds(self._line, [data], [1, 2])
            except OSError:
                self._lose()
            still_s = 0.0
            while not self.is_gone:
                if not select.select([self._line], [], [], _LOOK_S)[0]:
                    still_s = still_s + _LOOK_S if _state(self.pid) in _STILL else 0.0
                    if still_s > _STILL_S:  # rule 3
                        self._process.kill()
                        self._lose()
                    continue
                said = self._hear()
                if said is not None and said["number"] == self._asked:
                    return self._took(said)
        raise TryAgain("found the end of the process that starts all others, wanted a new one; see what it said")

    def _took(self, said: dict[str, Any]) -> Born:
        if "failed" in said:
            raise TryAgain(f"a process cannot be started: {said['failed']}")
        self._there.add(said["born"])
        self._codes.pop(said["born"], None)  # of an older process that had the same number
        return Born(self, said["born"])

    def ended(self, pid: int) -> int | None:
        """The exit code of a process; None: it has not ended."""
        with self._lock, suppress(BlockingIOError):
            while not self.is_gone:
                self._hear(socket.MSG_DONTWAIT)
        if pid not in self._codes and _state(self.pid) in _STILL and _state(pid) in _OVER:
            return -signal.SIGTERM  # rule 3; nobody can say how it ended
        return self._codes.get(pid)

    def close(self) -> None:
        """End it, and what it started."""
        if self.owner != os.getpid():
            return
        self._line.close()
        try:
            self._process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _hear(self, how: int = 0) -> dict[str, Any] | None:
        """The next answer to a request; None: it told something else."""
        try:
            data = self._line.recv(_LARGEST, how)
        except BlockingIOError:
            raise
        except OSError:
            data = b""
        if not data:
            self._lose()
            return None
        said: dict[str, Any] = json.loads(data)
        if "number" in said:
            if said["number"] != self._asked and "born" in said:  # whoever asked for it was interrupted
                with suppress(ProcessLookupError):
                    os.kill(said["born"], signal.SIGTERM)
            return said
        self._there.discard(said["ended"])
        self._codes[said["ended"]] = said["code"]
        return None

    def _lose(self) -> None:
        """It has died: the kernel has sent a signal to everybody that it started."""
        self.is_gone = True
        self._codes.update(dict.fromkeys(self._there, -signal.SIGTERM))


_STILL: Final = "Tt"
_OVER: Final = "ZX"


def _state(pid: int) -> str:
    """The letter that the kernel has for what a process does; X: it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as found:
            return found.read().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return "X"


_ours: list[Nursery] = []
_ours_lock = threading.Lock()


def nursery() -> Nursery:
    """The one of this process (rule 1)."""
    with _ours_lock:
        if _ours and (_ours[0].is_gone or _ours[0].owner != os.getpid()):
            _ours.clear()
        if not _ours:
            _ours.append(Nursery())
            atexit.register(_ours[0].close)
        return _ours[0]


def start(module: str, words: Sequence[str], environment: Mapping[str, str]) -> Born:
    """A new process that runs this module, of a new nursery if the old one is gone."""
    try:
        return nursery().start(module, words, environment)
    except TryAgain:
        return nursery().start(module, words, environment)


# --- the nursery itself


def _serve(owner: int, line: socket.socket) -> dict[str, Any] | None:
    """Start what is asked for and tell who has ended; None: the owner is gone. In a new process: what it shall be."""
    rings, bell = os.pipe()
    os.set_blocking(bell, False)
    signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while os.getppid() == owner:
        ready = select.select([line.fileno(), rings], [], [], _LOOK_S)[0]
        if rings in ready:
            os.read(rings, 4096)
            _tell_the_ended(line)
        if line.fileno() in ready:
            data, outputs, _, _ = socket.recv_fds(line, _LARGEST, 2)
            if not data:
                return None
            request = json.loads(data)
            if _fork(line, request["number"]):
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.close(rings)
                os.close(bell)
                return {**request, "outputs": outputs}
            for number in outputs:
                os.close(number)
    return None


def _tell_the_ended(line: socket.socket) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            line.send(json.dumps({"ended": ended[0], "code": os.waitstatus_to_exitcode(ended[1])}).encode())


def _fork(line: socket.socket, number: int) -> bool:
    """Whether this is the new process."""
    try:
        pid = os.fork()
    except OSError as error:
        line.send(json.dumps({"number": number, "failed": str(error)}).encode())
        return False
    if pid:
        line.send(json.dumps({"number": number, "born": pid}).encode())
    return pid == 0


def _become(request: dict[str, Any]) -> None:
    """Rule 2."""
    os.setsid()
    for number, output in enumerate(request["outputs"], start=1):
        os.dup2(output, number)
        os.close(output)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    module = request["module"]
    sys.argv = [module, *request["words"]]
    _rename([sys.executable, "-m", *sys.argv])
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _rename(words: Sequence[str]) -> None:
    """What the list of processes shows: the words that a process was started with are in its own memory (Linux)."""
    with open("/proc/self/stat", "rb") as found:
        first, end = (int(one) for one in found.read().rpartition(b")")[2].split()[45:47])
    if not 0 < first < end:
        return  # a kernel that does not tell
    room = end - first
    data = b"\0".join(os.fsencode(word) for word in words)[: room - 1]
    ctypes.memmove(first, data.ljust(room, b"\0"), room)


def _load() -> None:
    """What every process of the service needs; all of it stays, so no garbage is looked for.

    The threads that it has then are of OpenBLAS and jemalloc, which know how to be forked; newer Pythons warn of any.
    """
    warnings.filterwarnings("ignore", ".*multi-threaded.*", DeprecationWarning)
    os.environ.setdefault(*NO_FORK_HANDLERS)  # read once, when gRPC is loaded
    gc.disable()
    for role in ROLES:
        importlib.import_module(f"joinery.{role}.__main__")
        del sys.modules[f"joinery.{role}.__main__"]
    gc.freeze()
    gc.enable()


def _main() -> None:
    owner, line = int(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))
    _rename([sys.executable, "-m", "joinery.cli.nursery", *sys.argv[1:3]])
    _load()
    request = _serve(owner, line)
    line.close()
    if request is not None:
        _become(request)


if __name__ == "__main__":
    _main()
