"""Messages that a program numbers itself: recorded once, whoever repeats them (no Spark is needed to see it)."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from joinery.client import Refused, connect, numbered
from joinery.client.numbered import Place, Recorded
from joinery.flow import ingest
from joinery.partition.format import StreamFormat
from tests.support.running import counted, frame, running, truth, write_query


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with running(write_query(tmp_path)) as run:
        yield Place(run.gateway)


def forms(place: Place) -> tuple[StreamFormat, StreamFormat]:
    with connect(place.address) as query:
        return query.form("a"), query.form("b")


def test_repeated_messages_add_nothing_and_holes_are_filled(place: Place) -> None:
    a, b = frame(3_000, 1), frame(3_000, 2)
    form, other = forms(place)
    parts = [ingest.conform(form, one.to_batches()[0]) for one in (a.slice(0, 1_000), a.slice(1_000))]
    with connect(place.address) as query:
        results = query.results()
        assert Recorded(1_000) == numbered.record(place, form, "job/0", 3, parts[0])
        assert Recorded(0, is_known=True) == numbered.record(place, form, "job/0", 3, parts[0])
        assert Recorded(2_000) == numbered.record(place, form, "job/0", 7, parts[1]), "4 to 6 had no rows"
        assert Recorded(0, is_known=True) == numbered.record(place, form, "job/0", 7, parts[1])
        with pytest.raises(Refused, match="has begun anew"):
            numbered.record(place, form, "job/0", 0, parts[0])
        numbered.join(place, other, "job/0")
        assert Recorded(3_000) == numbered.record(place, other, "job/0", 0, ingest.conform(other, b.to_batches()[0]))
        for one in (form, form, other):
            numbered.end(place, one, "job/0")
        found: list[pa.RecordBatch] = list(results)
    assert truth(a, b) == counted(found)
