"""`make simulate`: what it prints and how it exits."""

import pytest

from tests.simulation.__main__ import main
from tests.simulation.mutations import MUTATIONS
from tests.simulation.runs import judge, tell


def first_failing_seed() -> int:
    return next(seed for seed in range(1000) if judge(seed).complaints)


def test_exact_schedules_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["6", "--jobs", "2", "--from", "3"])
    out = capsys.readouterr().out
    assert "6 of 6 schedules exact" in out
    assert " records\n" in out
    assert " commits\n" in out


def test_one_schedule_is_replayed_with_its_story(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["--seed", "4"])
    out = capsys.readouterr().out
    assert "seed 4\nquery:\n" in out
    assert "exact: missing 0, extra 0, duplicate 0" in out


def test_a_failure_names_its_seed_and_how_to_replay_it(capsys: pytest.CaptureFixture[str]) -> None:
    with MUTATIONS["matched_bit_not_checkpointed"]():
        seed = first_failing_seed()
        assert 1 == main(["1", "--jobs", "1", "--from", str(seed), "--no-shrink"])
    out = capsys.readouterr().out
    assert "0 of 1 schedules exact" in out
    assert f"make simulate SEED={seed}\n" in out
    assert "wrong:\n  extra: (" in out


def test_a_failure_is_told_with_as_little_as_it_needs() -> None:
    with MUTATIONS["matched_bit_not_checkpointed"]():
        seed = first_failing_seed()
        whole, small = tell(seed, budget=0), tell(seed, budget=60)
    assert "wrong:\n  extra: (" in small
    assert len(small.splitlines()) < len(whole.splitlines())


@pytest.mark.parametrize("n", ["0", "-3"])
def test_no_schedules_at_all_are_refused(n: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main([n] if n == "0" else ["--", n])
    assert f"N: found {n}, wanted at least 1 schedule; say make simulate N=100\n" == capsys.readouterr().err
