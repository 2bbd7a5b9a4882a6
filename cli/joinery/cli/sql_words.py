"""Complaints about a query that was said in SQL, in the words in which it was said: clauses and flags."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from joinery.model.errors import BadSpec, Complaint

_WORDS: Final = (
    (r"spec\.streams\[\d+\]\.window", "--sql", "write WITHIN 10 MINUTES after ON, or WITHIN 100 ROWS"),
    (r"spec\.streams\[(\d+)\]\.time\.unit", "--unit", ""),
    (r"spec\.streams\[(\d+)\]\.time\.lateness", "--lateness", ""),
    (r"spec\.streams\[(\d+)\]\.time.*", "--time", "say --time {stream}=COLUMN; without --time rows have their arrival"),
    (r"spec\.streams\[(\d+)\].*", "--source {stream}", ""),
    (r"spec\.join\.on.*", "--sql: ON", "join columns of one type: mend the files, or their types in a query file"),
    (r"spec\.join.*", "--sql: ON", ""),
    (r"spec\.filter", "--sql: WHERE", ""),
    (r"spec\.select.*", "--sql: SELECT", ""),
    (r"spec\.sql", "--sql", ""),
    (r"spec\.sinks.*", "--out", ""),
)
"""What a field is called, and what to do about it; empty: as the complaint says."""


@contextmanager
def in_words_of_sql(streams: Sequence[str]) -> Iterator[None]:
    """What is wrong is told as whoever wrote the statement knows it; equal complaints of several streams once."""
    try:
        yield
    except BadSpec as bad:
        told = [_reworded(one, streams) for one in bad.complaints]
        first = {(one.field, one.remedy): one for one in reversed(told)}
        raise BadSpec(list(reversed(first.values()))) from bad


def _reworded(complaint: Complaint, streams: Sequence[str]) -> Complaint:
    for pattern, field, remedy in _WORDS:
        if (found := re.fullmatch(pattern, complaint.field)) is None:
            continue
        place = int(found[1]) if found.groups() else 0
        named = {"stream": streams[place] if place < len(streams) else "NAME"}
        again = remedy.format(**named) or complaint.remedy
        if complaint.remedy.startswith("did you mean"):
            again = f"{complaint.remedy} {again}"
        return replace(complaint, field=field.format(**named), remedy=again)
    return complaint
