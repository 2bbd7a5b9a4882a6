"""The embedded Redis server: settings, its end, what it leaves, and what it survives."""

import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis import exceptions as failures

from joinery.adapters.embedded_redis import EmbeddedRedis, connect
from joinery.model.errors import Bug, TryAgain, UserMustAct


def is_alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


def wait_for_end(process: int, seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while is_alive(process) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(process)


def process_of(server: EmbeddedRedis) -> int:
    return int(server.connect().info("server")["process_id"])


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary files go in this test; not in pytest's own folder, whose path is too long for a socket."""
    with tempfile.TemporaryDirectory(prefix="j-") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


@pytest.mark.parametrize(("durability", "appendonly"), [("memory", "no"), ("wal", "yes")])
def test_the_settings_are_ours(durability: str, appendonly: str) -> None:
    with EmbeddedRedis(durability=durability) as server:  # type: ignore[arg-type]
        found = server.connect().config_get("*")
    wanted = {
        "appendonly": appendonly,
        "appendfsync": "always",
        "auto-aof-rewrite-percentage": "0",
        "maxmemory-policy": "noeviction",
        "save": "",
        "port": "0",
    }
    assert wanted == {name: found[name] for name in wanted}


def test_a_stopped_server_leaves_no_process_and_no_file(scratch: Path) -> None:
    with EmbeddedRedis(durability="wal") as server:
        server.connect().set("a", "1")
        process = process_of(server)
        assert [] != list(scratch.iterdir())
    assert not is_alive(process)
    assert [] == list(scratch.iterdir())


def test_stopping_twice_is_fine_and_starting_again_too(scratch: Path) -> None:
    server = EmbeddedRedis()
    for _ in range(2):
        assert server.start().connect().ping()
        server.stop()
        server.stop()
    assert [] == list(scratch.iterdir())
    with pytest.raises(Bug, match="before start"):
        _ = server.url


def test_a_given_directory_is_kept_and_read_again(tmp_path: Path) -> None:
    directory = tmp_path / 'a folder with "quotes"'
    for number in range(3):
        with EmbeddedRedis(directory, durability="wal") as server:
            assert number == server.connect().incr("starts") - 1


def test_two_servers_never_share_a_directory(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path), pytest.raises(UserMustAct, match="another Redis at work"):
        EmbeddedRedis(tmp_path, wait_s=0.2).start()


def test_a_server_killed_in_the_middle_of_writes_has_lost_nothing_that_it_answered(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path, durability="wal").start()
    client, process, answered = server.connect(), process_of(server), 0
    killer = threading.Timer(0.3, os.kill, (process, signal.SIGKILL))
    killer.start()
    with suppress(failures.ConnectionError):
        for number in itertools.count(1):
            client.set("counter", number)
            answered = number
    killer.join()
    assert wait_for_end(process)
    server.stop()
    with EmbeddedRedis(tmp_path, durability="wal") as again:
        assert 10 < answered <= int(again.connect().get("counter")) <= answered + 1  # type: ignore[arg-type]


OWNER = """
import sys, time
from pathlib import Path
from joinery.adapters.embedded_redis import EmbeddedRedis
import tempfile
tempfile.tempdir = sys.argv[1]
server = EmbeddedRedis().start()
print(server.connect().info("server")["process_id"], server._watcher.pid, flush=True)
time.sleep(60)
"""


def start_owner(scratch: Path) -> tuple["subprocess.Popen[str]", int, int]:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(scratch)], stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert owner.stdout is not None
    server, watcher = map(int, owner.stdout.readline().split())
    return owner, server, watcher


def end(owner: "subprocess.Popen[str]") -> None:
    owner.kill()
    owner.communicate()


def test_a_killed_owner_takes_the_server_with_it_and_nothing_is_left(scratch: Path) -> None:
    owner, server, watcher = start_owner(scratch)
    assert is_alive(server)
    end(owner)
    assert wait_for_end(server)
    assert wait_for_end(watcher)
    assert [] == list(scratch.iterdir())


def test_a_killed_watcher_takes_the_server_with_it(scratch: Path) -> None:
    owner, server, watcher = start_owner(scratch)
    os.kill(watcher, signal.SIGKILL)
    try:
        assert wait_for_end(server)
    finally:
        end(owner)
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)


def test_an_interrupt_of_the_terminal_does_not_reach_the_server() -> None:
    with EmbeddedRedis() as server:
        assert os.getpgid(process_of(server)) != os.getpgid(0)


def test_a_server_that_does_not_come_up_shows_its_log(tmp_path: Path, scratch: Path) -> None:
    broken = tmp_path / "redis-server"
    broken.write_text("#!/bin/sh\necho it will not work\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(UserMustAct, match="it will not work"):
        EmbeddedRedis(binary=broken).start()
    assert [] == list(scratch.iterdir())


def test_a_server_that_says_nothing_is_given_up(tmp_path: Path, scratch: Path) -> None:
    silent = tmp_path / "redis-server"
    silent.write_text("#!/bin/sh\necho thinking\nexec sleep 60\n")
    silent.chmod(0o755)
    with pytest.raises(UserMustAct, match=r"silence(?s:.*)thinking"):
        EmbeddedRedis(binary=silent, wait_s=0.5).start()
    assert [] == list(scratch.iterdir())


def test_a_missing_server_is_told_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UserMustAct, match=r"joinery\[embedded\]"):
        EmbeddedRedis().start()


def test_a_socket_path_that_is_too_long_is_told(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = scratch / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with pytest.raises(UserMustAct, match="TMPDIR"):
        EmbeddedRedis().start()
    assert [] == list(deep.iterdir())


def test_a_redis_that_is_not_there_may_come_and_its_password_is_not_told() -> None:
    with pytest.raises(TryAgain, match=r"redis://127.0.0.1:1/0: found no answer") as refused:
        connect("redis://me:secret@127.0.0.1:1/0")
    assert "secret" not in str(refused.value)


def test_a_database_that_is_not_there_is_refused() -> None:
    with EmbeddedRedis() as server, pytest.raises(UserMustAct, match=r"DB index is out of range.*mend the number"):
        connect(f"{server.url}?db=3")


def test_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(UserMustAct, match="wanted redis://user:password@host:port"):
        connect("http://example.org")


@pytest.mark.parametrize(
    ("change", "told"),
    [({"redis_version": "6.0.9"}, "6.2 or newer"), ({"maxmemory_policy": "allkeys-lru"}, "noeviction")],
)
def test_a_redis_that_would_not_keep_our_keys_is_refused(
    change: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedRedis() as server:
        found = {**server.connect().info(), **change}
        monkeypatch.setattr("redis.Redis.info", lambda _: found)
        with pytest.raises(UserMustAct, match=told):
            server.connect()
