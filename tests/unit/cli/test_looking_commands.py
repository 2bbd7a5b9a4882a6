"""top, where and explain: how a look is shown, and what is refused; and simulate recorded on a recorded load."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from joinery.adapters.dashboard import Film
from joinery.adapters.scaling_record import NAME
from joinery.cli.main import app
from joinery.cli.progress import Progress
from joinery.cli.top import Show, picture, sight_of
from joinery.cli.where import as_plain, is_over, story
from joinery.elastic.load import Role
from joinery.machine.messages import GroupPlace, Looked, Overview, RecordPlace, Station, StreamView, WorkerView
from joinery.model.ids import GroupId, RecordNo, Term, WorkerId
from joinery.model.time import TIME_MAX, TIME_MIN
from tests.support.scaling_runs import record_run, scaling_spec

RUN = CliRunner()
W0 = WorkerId("worker-0")


def looked(**more: object) -> Looked:
    told = record_run(scaling_spec(), None)
    streams = (
        StreamView(rows=1200, late=3, rows_per_s=99.6, watermark_ns=60 * 10**9),
        StreamView(rows=7, late=0, rows_per_s=0.0, watermark_ns=TIME_MAX),
    )
    workers = (WorkerView(worker=W0, is_up=True, groups=60, role=Role.SUPPLIER, report=told[5].load.reports[0]),)
    view = Overview(
        at_ns=62 * 10**9, records=RecordNo(40), streams=streams, workers=workers, degree=1, n_sup=1, uncommitted=33,
        checkpointed_ns=60 * 10**9,
    )  # fmt: skip
    return Looked(term=Term(1), spec=scaling_spec(), view=view, decisions=tuple(told), **more)  # type: ignore[arg-type]


def shown(one: Looked) -> str:
    out, progress = StringIO(), Progress("orders", one.spec)
    progress.saw(one.view)
    Console(file=out, width=160).print(picture(progress, one))
    return out.getvalue()


def test_top_shows_streams_workers_watermarks_and_the_last_decision() -> None:
    text = shown(looked())
    assert "orders  100 rows/s" in text
    assert "│ worker-0 │ supplier │" in text
    assert "stream a: 1,200 rows, 100/s, 3 late rows, watermark 1970-01-01 00:01:00 UTC, 2.0 s behind the clock" in text
    assert "stream b: 7 rows, 0/s, ended" in text
    assert "records: 40, not committed 7" in text
    assert "last checkpoint 2.0 s ago" in text
    assert "degree 1 (1 to 5), 1 supplier, 0 consumers, β 0.5, rule guarded" in text
    assert looked().decisions[-1].words() in text


def test_top_says_where_nobody_decides_or_nothing_was_told() -> None:
    one = looked()
    assert "no decision was told to this gateway yet" in shown(replace(one, decisions=()))
    assert "a person decides" in shown(replace(one, spec=scaling_spec(mode="Manual")))
    quiet = replace(one.view, streams=(replace(one.view.streams[0], watermark_ns=TIME_MIN), one.view.streams[1]))
    assert "no watermark yet" in shown(replace(one, view=quiet))


def test_top_as_json_is_a_frame_of_the_dashboard_with_the_operators_words() -> None:
    one = looked()
    frame = Film("orders", "top").add(sight_of(one))
    json.dumps(frame, allow_nan=False)
    assert one.decisions[-1].words() == frame["decision"]
    assert "1 fewer: 0 suppliers < 1, and busy 0.5 / 1 < target 0.8" == frame["change"]["text"]


def place(*stations: Station, kept: bool = True, recorded: bool = True) -> RecordPlace:
    groups = tuple(
        GroupPlace(group=GroupId(at), rows=at + 1, station=station, worker=W0, sent=9, committed=at)
        for at, station in enumerate(stations)
    )
    return RecordPlace(record=RecordNo(8), is_recorded=recorded, is_kept=kept, groups=groups)


def test_a_record_is_told_station_by_station() -> None:
    one = looked()
    lines = story(place(Station.WAITING, Station.COMMITTED, Station.COMMITTED), one)
    assert "record 8 is recorded: 6 rows for 3 groups" == lines[0]
    assert "  1 row wait in the gateway's mini-buffers for the worker's slot" in lines[1]
    assert (
        "  5 rows are committed: worker-0 (2 groups: 1, 2; sent up to 9, committed up to 1)" == lines[2]
    ), lines  # fmt: skip
    assert ["record 8 is not recorded yet; the next one is 40"] == story(place(recorded=False), one)
    assert "kept no more" in story(place(kept=False), one)[0]
    assert "no rows" in story(place(), one)[0]


def test_a_record_is_over_when_nothing_more_happens_to_it() -> None:
    assert is_over(place(Station.COMMITTED, Station.LOST))
    assert is_over(place(kept=False))
    assert not is_over(place(Station.JOINED))
    assert not is_over(place(recorded=False))
    assert not as_plain(place(Station.COMMITTED, Station.LOST), looked())["committed"]
    assert as_plain(place(Station.COMMITTED), looked())["committed"]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["top"], "neither a query nor --gateway"),
        (["top", "q", "--gateway", "h:1"], "a query and --gateway"),
        (["top", "nosuch.yaml"], "no running query"),
        (["top", "q", "--every", "0"], "wanted more than 0"),
        (["where", "query.yaml", "many"], "wanted a query and the number of a record"),
        (["where", "7"], "neither a query nor --gateway"),
        (["explain", "nosuch"], "no running query"),
        (["simulate", "recorded", "nosuch"], "record one: joinery run --record DIR"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(words: list[str], wanted: str) -> None:
    done = RUN.invoke(app, words)
    assert (2, True) == (done.exit_code, wanted in done.stderr), done.output


def test_a_gateway_that_is_not_there_is_exit_code_1() -> None:
    for words in (["top", "--once"], ["explain"], ["where", "7"]):
        done = RUN.invoke(app, [*words, "--gateway", "127.0.0.1:1", "--wait", "0.3"])
        assert (1, True) == (done.exit_code, "127.0.0.1:1" in done.stderr), done.output


def test_explain_tells_the_last_decisions_of_a_recorded_run_with_their_inputs(tmp_path: Path) -> None:
    told = record_run(scaling_spec(), tmp_path)
    done = RUN.invoke(app, ["explain", str(tmp_path), "--last", "30"])
    assert 0 == done.exit_code, done.output
    lines = done.stdout.splitlines()
    assert "rule guarded: β 0.5, Th_sup 0.5, Th_con 0.01, S_low 1, 1 to 5 workers, t_r 1.0 s" in lines[0]
    assert told[-1].words() in lines[-3]
    assert "1 of 1 ready, 0 suppliers, 1 consumer, busy 0.50, memory 0.00: worker-0 consumer f 0 u 0.5" in lines[-2]
    assert "1 worker since" in lines[-1]
    assert any("1 more: 1 supplier > 0.5 x 0 consumers" in line for line in lines)


def test_explain_tells_what_another_setting_would_have_done(tmp_path: Path) -> None:
    record_run(scaling_spec(), tmp_path)
    done = RUN.invoke(app, ["explain", str(tmp_path), "--max", "2"])
    assert "with max = 2: other workers from" in done.stdout
    assert "instead of" in done.stdout.splitlines()[-1]
    same = RUN.invoke(app, ["explain", str(tmp_path), "--beta", "0.4"])
    assert "with beta = 0.4: the same workers at every one of" in same.stdout
    plain = json.loads(RUN.invoke(app, ["explain", str(tmp_path), "--max", "2", "--json", "--last", "2"]).stdout)
    assert (2, 5, "2") == (len(plain["decisions"]), plain["scaling"]["max"], plain["other"]["max"])
    refused = RUN.invoke(app, ["explain", str(tmp_path), "--beta", "3"])
    assert (2, True) == (refused.exit_code, "beta" in refused.stderr)


def test_explain_says_why_there_is_no_decision(tmp_path: Path) -> None:
    record_run(scaling_spec(mode="Manual"), tmp_path)
    assert "a person decides" in RUN.invoke(app, ["explain", str(tmp_path)]).stdout


def test_simulate_recorded_repeats_every_decision_and_sweeps_with_a_table_and_a_plot(tmp_path: Path) -> None:
    count = len(record_run(scaling_spec(), tmp_path))
    plot, plain = tmp_path / "out.png", tmp_path / "out.json"
    sweeps = ["--sweep", "beta=0.2,0.8", "--sweep", "th_sup=0.3", "--sweep", "t_r=1s,4s", "--sweep", "max=2"]
    words = ["simulate", "recorded", str(tmp_path), *sweeps, "--plot", str(plot), "--json", str(plain)]
    done = RUN.invoke(app, words)
    assert 0 == done.exit_code, done.output
    assert f"{count} decisions, {count} equal" == done.stdout.splitlines()[0]
    assert 4 == done.stdout.count("recorded  ")
    assert plot.read_bytes().startswith(b"\x89PNG")
    held = json.loads(plain.read_text())
    assert (count, count, 6) == (held["decisions"], held["equal"], len(held["sweeps"]))
    by_max = held["sweeps"][-1]
    assert ("max", "2", 2) == (by_max["name"], by_max["value"], max(workers for _, workers, _ in by_max["points"]))


def test_simulate_recorded_ends_with_1_if_a_decision_is_not_made_again(tmp_path: Path) -> None:
    count = len(record_run(scaling_spec(), tmp_path))
    path = tmp_path / NAME
    path.write_text(path.read_text().replace('"wish": "grow", "by": 1', '"wish": "grow", "by": 2', 1))
    done = RUN.invoke(app, ["simulate", "recorded", str(tmp_path)])
    assert (1, f"{count} decisions, {count - 1} equal") == (done.exit_code, done.stdout.splitlines()[0])
    assert "recorded: 2 more" in done.stdout
    assert "repeated: 1 more" in done.stdout


def test_a_sweep_needs_decisions_and_a_plot_a_sweep(tmp_path: Path) -> None:
    record_run(scaling_spec(mode="Manual"), tmp_path)
    words = ["simulate", "recorded", str(tmp_path)]
    assert "0 decisions, 0 equal" in RUN.invoke(app, words).stdout
    assert 2 == RUN.invoke(app, [*words, "--sweep", "beta=0.2"]).exit_code
    assert "found no --sweep" in RUN.invoke(app, [*words, "--plot", str(tmp_path / "x.png")]).stderr


def test_top_in_a_pipe_is_a_line_for_each_look() -> None:
    out, one = StringIO(), looked()
    show = Show("orders", Console(file=out, width=200), as_json=False, is_whole=False)
    show.before(one)
    show.show(replace(one, view=replace(one.view, at_ns=one.view.at_ns + 10**9)))
    (line,) = out.getvalue().splitlines()
    assert "  100 rows/s  0 results  1 worker" in line
    assert 2 == show.seen
