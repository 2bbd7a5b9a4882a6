"""A query file is judged before any process starts."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from joinery.cli.main import app
from joinery.cli.query_file import read_query
from joinery.model.errors import BadSpec, UserMustAct


def written(folder: Path, source: dict[str, Any]) -> Path:
    streams = [
        {"name": "a", "schema": {"k": "int64"}, "window": "1s", "source": source},
        {"name": "b", "schema": {"k": "int64"}, "window": "1s"},
    ]
    query = {
        "apiVersion": "joinery.dev/v1alpha1",
        "kind": "JoinQuery",
        "metadata": {"name": "q"},
        "spec": {"streams": streams, "join": {"on": ["k"]}},
    }
    path = folder / "query.yaml"
    path.write_text(yaml.safe_dump(query))
    return path


def test_a_file_in_another_encoding_is_told_as_that(tmp_path: Path) -> None:
    path = tmp_path / "query.yaml"
    path.write_bytes("# für\n".encode("latin-1"))
    with pytest.raises(UserMustAct, match=r"found no UTF-8 at byte 3, .* save the file as UTF-8"):
        read_query(path)


def test_what_a_redis_stream_cannot_do_is_told_before_a_redis_is_started(tmp_path: Path) -> None:
    path = written(tmp_path, {"redisStream": {"key": "x"}, "pace": "time"})
    with pytest.raises(BadSpec, match=r"streams\[0\]\.source\.pace: found time, wanted none for a Redis Stream"):
        read_query(path)
    assert read_query(written(tmp_path, {"redisStream": {"key": "x"}})).streams[0].source is not None


def test_ctrl_c_before_anything_runs_ends_as_it_does_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: Path) -> str:
        raise KeyboardInterrupt(path)

    monkeypatch.setattr("joinery.cli.run.text_of", interrupted)
    done = CliRunner().invoke(app, ["run", str(tmp_path / "query.yaml")])
    assert (1, "stopped\n") == (done.exit_code, done.output)
