"""A recorded run decides the same when it is told again, and other settings decide otherwise where they should."""

from dataclasses import replace
from pathlib import Path

import pytest

from joinery.adapters.scaling_record import NAME, read_scaling
from joinery.cli.settings_asked import change_of, sweep_of
from joinery.elastic.guarded import Wish
from joinery.machine.facts import Received, ReplicasWanted
from joinery.machine.messages import SpecNow
from joinery.model.errors import BadSpec, UserMustAct
from joinery.model.ids import GATEWAY, Term
from joinery.simulate.recorded import RecordedRun, Step, as_recorded, repeat, run_of, what_if
from tests.support.scaling_runs import SECOND, STEP, record_run, scaling_spec


@pytest.fixture
def run(tmp_path: Path) -> RecordedRun:
    record_run(scaling_spec(), tmp_path)
    (found,) = read_scaling(tmp_path)
    return found


def degrees(run: RecordedRun) -> list[int]:
    return [one.load.degree for one in run.decisions]


def test_the_recorded_run_grew_and_shrank_and_every_decision_is_made_again(run: RecordedRun) -> None:
    assert (1, 3, 1) == (degrees(run)[0], max(degrees(run)), degrees(run)[-1])
    assert [] == repeat(run)


def test_what_is_read_is_what_was_told(tmp_path: Path) -> None:
    told = record_run(scaling_spec(), tmp_path)
    assert told == list(read_scaling(tmp_path)[0].decisions)
    assert told == list(read_scaling(tmp_path / NAME)[0].decisions)


def test_another_number_in_the_recording_is_found(tmp_path: Path) -> None:
    record_run(scaling_spec(), tmp_path)
    path = tmp_path / NAME
    lines = path.read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if '"wish": "grow"' in line)
    lines[at] = lines[at].replace('"role": "supplier"', '"role": "neutral"')
    path.write_text("\n".join(lines) + "\n")
    found = repeat(read_scaling(path)[0])
    assert Wish.GROW is found[0].recorded.wish  # type: ignore[union-attr]
    assert Wish.KEEP is found[0].repeated.wish  # type: ignore[union-attr]


def test_changes_of_the_spec_and_wishes_of_people_are_repeated_too(run: RecordedRun) -> None:
    spec = scaling_spec(beta=0.9, max=2)
    steps = list(run.steps)
    steps.insert(3, Step(3 * SECOND, Received(GATEWAY, SpecNow(Term(1), spec))))
    steps.insert(4, Step(3 * SECOND, ReplicasWanted(2, 5 * SECOND, "a person asked")))
    changed = replace(run, steps=tuple(steps))
    assert repeat(changed)  # the decisions in it were made by other settings
    assert 2 == max(point.workers for point in as_recorded(changed).points)


def test_the_same_settings_do_the_same(run: RecordedRun) -> None:
    same = as_recorded(run)
    assert (None, degrees(run)) == (same.differs_ns, [point.workers for point in same.points if point.decided])
    assert list(run.decisions) == [point.decided for point in same.points if point.decided is not None]


def test_fewer_workers_at_most_are_less_work_done_in_time(run: RecordedRun) -> None:
    other = what_if(run, change_of({"max": "2"}))
    assert other.differs_ns is not None
    assert 2 == max(point.workers for point in other.points)
    assert other.overloaded > as_recorded(run).overloaded
    assert other.worker_seconds < as_recorded(run).worker_seconds


def test_a_target_that_no_shrink_can_meet_keeps_the_workers(run: RecordedRun) -> None:
    other = what_if(run, change_of({"target": "0.1"}))
    assert (0, 3) == (other.acts(Wish.SHRINK), other.points[-1].workers)


def test_another_supplier_threshold_makes_other_roles_of_the_same_reports(tmp_path: Path) -> None:
    record_run(scaling_spec(rule="paper", minSuppliers=0, max=3), tmp_path, [1.5] * 4)
    (run,) = read_scaling(tmp_path)
    assert 1 == run.decisions[0].load.n_sup
    other = what_if(run, change_of({"th_sup": "0.95"}))
    assert 0 == other.points[0].decided.load.n_sup  # type: ignore[union-attr]
    assert other.points[0].at_ns == other.differs_ns


def test_a_longer_epoch_sees_the_mean_of_its_reports(run: RecordedRun) -> None:
    other = what_if(run, change_of({"t_r": "4s"}))
    assert [4, 5, 9, 13][1:] == [point.at_ns // SECOND for point in other.points[:3]]
    assert abs(other.points[0].demand - sum(STEP[:5]) / 5) < 0.7  # of the worker that was there in the end
    assert len(other.points) < len(STEP) / 3


def test_a_shorter_epoch_than_recorded_is_refused(run: RecordedRun) -> None:
    with pytest.raises(BadSpec, match="t_r: found 500ms, wanted at least 1s, as recorded"):
        what_if(run, change_of({"t_r": "500ms"}))


def test_a_setting_that_no_query_could_have_is_refused(run: RecordedRun) -> None:
    with pytest.raises(BadSpec, match="beta"):
        what_if(run, change_of({"beta": "7"}))
    with pytest.raises(UserMustAct, match="wanted a number"):
        what_if(run, change_of({"beta": "many"}))
    with pytest.raises(UserMustAct, match="wanted NAME=VALUE,VALUE"):
        sweep_of("gamma=1")
    assert ("th_sup", ["0.3", "0.5"]) == sweep_of("Th-sup=0.3, 0.5")


def test_what_a_gateway_still_knows_of_a_run_is_a_run(run: RecordedRun) -> None:
    known = run_of(run.spec, run.decisions[5:])
    assert run.decisions[5:] == known.decisions
    assert [one.load.degree for one in known.decisions] == [point.workers for point in as_recorded(known).points]
    assert what_if(known, change_of({"max": "2"})).differs_ns is not None


def test_a_person_between_two_decisions_is_seen_by_the_degree(run: RecordedRun) -> None:
    first, second = run.decisions[0], run.decisions[1]
    other = replace(second, load=replace(second.load, degree=3))
    known = run_of(run.spec, [first, other])
    assert [1, 3] == [point.workers for point in as_recorded(known).points]


def test_a_run_that_was_killed_is_read_up_to_there_and_one_that_went_on_is_a_second(tmp_path: Path) -> None:
    record_run(scaling_spec(), tmp_path)
    record_run(scaling_spec(), tmp_path)
    with (tmp_path / NAME).open("a") as file:
        file.write('{"at_ns": 5, "rep')
    found = read_scaling(tmp_path)
    assert [34, 34] == [len(one.decisions) + sum(step.load is not None and step.decided is None for step in one.steps)
                        for one in found]  # fmt: skip
    assert [[], []] == [repeat(one) for one in found]


@pytest.mark.parametrize("text", ["{}\n", '{"at_ns": 1, "connected": true}\n', "no JSON\n{}\n"])
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(UserMustAct, match="line 1: found what cannot be read"):
        read_scaling(tmp_path)


def test_a_folder_without_a_recording_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(UserMustAct, match="record one: joinery run --record DIR"):
        read_scaling(tmp_path)
    (tmp_path / NAME).write_text("")
    with pytest.raises(UserMustAct, match="found no run"):
        read_scaling(tmp_path)
