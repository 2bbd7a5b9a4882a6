"""The two truths agree, and the second one can be asked about large inputs."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle import duck, naive
from tests.oracle.compare import compare
from tests.oracle.drawing import asked, recorded
from tests.oracle.history import History
from tests.oracle.recorded import FACTS, FOREVER, Count, JoinType, Time, Unbounded, Window, WindowChange, tables
from tests.oracle.strategies import TYPES, histories, questions


def assert_both_truths_agree(history: History) -> None:
    question, final = history.question, history.final
    first = naive.join(question, history.rows, final=final)
    inputs = tables(history.rows, history.schemas)
    second = duck.join(question, inputs, final=final)
    assert "missing 0, extra 0, duplicate 0" == str(compare(second, first))
    rendered = duck.render(question, inputs, second)
    assert "missing 0, extra 0, duplicate 0" == str(compare(rendered, naive.render(question, history.rows, first)))
    assert [name for name, _, _ in question.output()] == rendered.column_names


@pytest.mark.parametrize(("type_", "count"), [*((type_, 2) for type_ in TYPES), ("inner", 3), ("inner", 4)])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_both_truths_agree(type_: JoinType, count: int, data: st.DataObject) -> None:
    assert_both_truths_agree(data.draw(histories(asked=questions(types=(type_,), counts=(count,)))))


@settings(max_examples=30, deadline=None)
@given(histories(asked=questions(kinds=("count", "time"))))
def test_both_truths_agree_on_count_windows(history: History) -> None:
    assert_both_truths_agree(history)


def column(*times: int, key: int = 7) -> pa.Table:
    count = len(times)
    facts = {name: pa.array([0] * count, pa.int64()) for name in FACTS}
    facts |= {"_position": pa.array(range(count)), "_time": pa.array(times, pa.int64())}
    return pa.table(
        facts | {"_late": pa.array([False] * count), "key": pa.array([key] * count), "time": pa.array(times)}
    )


def test_one_hot_key_does_not_make_every_pair_a_candidate() -> None:
    count = 100_000
    stream = column(*range(count))
    results = duck.join(asked(Time(1), Time(1)), [stream, stream])
    ids = np.arange(count)
    truth = np.concatenate(
        [
            np.stack([ids[max(0, -d) : count - max(0, d)], ids[max(0, -d) : count - max(0, d)] + d], 1)
            for d in (-1, 0, 1)
        ]
    )
    found = np.stack([name.to_numpy() for name in results.columns], 1)
    assert "missing 0, extra 0, duplicate 0" == str(compare(found, truth))


@pytest.mark.parametrize("window", [Time(2**62 - 1), Time(2**64), Unbounded(), Count(10**12)])
def test_the_ends_of_time_do_not_overflow(window: Window) -> None:
    first, last = -(2**62) + 1, 2**62 - 1
    question = asked(window, Time(0), type="left")
    reached = [(0, 0)] if window != Time(2**62 - 1) else [(0, None)]
    assert reached == list(zip(*duck.join(question, [column(first), column(last)]).to_pydict().values(), strict=True))


def test_a_row_that_is_not_closed_is_not_left_over() -> None:
    question = asked(Time(3), Time(0), type="left")
    inputs = [column(2), column()]
    assert [0, 1] == [duck.join(question, inputs, final=(FOREVER, at)).num_rows for at in (5, 6)]


def test_positions_are_null_where_there_is_no_member() -> None:
    joined = duck.join(asked(Time(0), Time(0), type="full"), [column(1), column(2)])
    assert {"a": [0, None], "b": [None, 0]} == joined.sort_by("a").to_pydict()


def test_values_keep_their_arrow_type() -> None:
    stream = column(1).append_column("price", pa.array(["x"]).dictionary_encode())
    question = replace(asked(Time(0), Time(0)), columns=(("price",), ("price",)))
    rendered = duck.render(question, [stream, stream], duck.join(question, [stream, stream]))
    assert [pa.dictionary(pa.int32(), pa.string())] * 2 == rendered.schema.types


def test_changes_are_refused() -> None:
    change = WindowChange(record=0, windows=(Time(0), Time(0)), floors=(0, 0))
    with pytest.raises(NotImplementedError, match="naive"):
        duck.join(asked(Time(0), Time(0)), [column(), column()], [change])


@pytest.mark.parametrize("part", ["where", "filter"])
def test_a_condition_without_its_sql_is_refused(part: str) -> None:
    question = asked(Time(0), Time(0), **{part: lambda _: True})
    inputs = [column(1), column(1)]
    with pytest.raises(ValueError, match=f"{part}_sql"):
        duck.render(question, inputs, duck.join(question, inputs))


def test_a_stream_may_not_have_a_column_named_like_a_fact() -> None:
    with pytest.raises(ValueError, match="rename"):
        tables(recorded("a: x"), [pa.schema([("_time", pa.int64())])])
