"""Reading a mapping into a model with all complaints at once.

Rule 1: every field is looked at, whatever else is wrong (pydantic does that within the models).
Rule 2: what concerns several fields (`spec_checks`) is also looked at, as far as the fields that a check reads are
sound. For that the broken ones are replaced by their example, or left out, and the checks that read a replaced field
are skipped.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from joinery.model.complaints import printable, show
from joinery.model.errors import BadSpec, Complaint
from joinery.model.spec_complaints import complaints_of, path_of
from joinery.model.spec_fields import Section
from joinery.model.spec_lookup import Place, field_at, section_at

MAX_COMPLAINTS: Final = 100
"""Complaints that are told at once; nobody reads more."""

MAX_DEPTH: Final = 32
MAX_VALUES: Final = 100_000

S = TypeVar("S", bound=Section)
Check = Callable[[S, list[Place]], Iterable[Complaint]]


def parse_section(model: type[S], raw: object, root: Place, check: Check[S]) -> S:
    """The model that a mapping describes, or `BadSpec` with every complaint about it."""
    here = path_of(root) or "the query"
    if not isinstance(raw, Mapping):
        raise BadSpec([Complaint(here, show(raw), "a mapping", "write its fields by name")])
    if _is_excessive(raw):
        found = f"more than {MAX_DEPTH} levels or {MAX_VALUES} values"
        raise BadSpec([Complaint(here, found, "a query", "is this the right file?")])
    try:
        made = model.model_validate(raw)
    except ValidationError as error:
        refused = list(complaints_of(model, error, root, raw))
        complaints = [complaint for _, complaint in refused]
        complaints.extend(_checks_of_the_rest(model, raw, [place for place, _ in refused], check))
        raise BadSpec(_bounded(complaints)) from None
    if complaints := list(check(made, [])):
        raise BadSpec(_bounded(complaints))
    return made


def _is_excessive(raw: object) -> bool:
    """Whether an input is too deep or too large to be a query; without recursion, and it ends for a circle too."""
    waiting, seen = [(raw, 1)], 0
    while waiting:
        value, depth = waiting.pop()
        seen += 1
        inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
        if depth > MAX_DEPTH or seen + len(inside) > MAX_VALUES:
            return True
        waiting.extend((held, depth + 1) for held in inside)
    return False


def _bounded(complaints: list[Complaint]) -> list[Complaint]:
    distinct = list(dict.fromkeys(_cleaned(complaint) for complaint in complaints))
    if len(distinct) <= MAX_COMPLAINTS:
        return distinct
    rest = Complaint("the query", f"{len(distinct) - MAX_COMPLAINTS} more complaints", "none", "mend these first")
    return [*distinct[:MAX_COMPLAINTS], rest]


def _cleaned(complaint: Complaint) -> Complaint:
    parts = (complaint.field, complaint.found, complaint.wanted, complaint.remedy)
    return Complaint(*(printable(part) for part in parts))


def _checks_of_the_rest(
    model: type[S], raw: Mapping[Any, Any], broken: list[Place], check: Check[S]
) -> Iterator[Complaint]:
    mended = _copied(raw)
    for place in sorted(
        broken, key=lambda place: [f"{step:09}" if isinstance(step, int) else step for step in place], reverse=True
    ):
        if place:
            _mend(model, mended, place)
    try:
        made = model.model_validate(mended)
    except ValidationError:
        return
    yield from check(made, broken)


def _copied(value: object) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(held) for key, held in value.items()}
    return [_copied(held) for held in value] if isinstance(value, (list, tuple)) else value


def _mend(model: type[Section], raw: Any, place: Place) -> None:
    """Replace the value at a broken place by the example of its field, or take it out if the query can do without."""
    holder = raw
    for step in place[:-1]:
        holder = _at(holder, step)
    last, example = place[-1], _example(model, place)
    if example is not None and (isinstance(holder, dict) or _at(holder, last) is not None):
        holder[last] = example
    elif isinstance(holder, dict):
        holder.pop(last, None)
    elif _at(holder, last) is not None:
        del holder[last]


def _at(holder: Any, step: int | str) -> Any:
    if isinstance(holder, dict):
        return holder.get(step)
    return holder[step] if isinstance(holder, list) and isinstance(step, int) and step < len(holder) else None


def _example(model: type[Section], place: Place) -> Any:
    """The example of a necessary field at a place; for an entry of a list, the first entry of the list's example."""
    if isinstance(place[-1], int):
        entries = _example(model, place[:-1]) if len(place) > 1 else None
        return entries[0] if isinstance(entries, list) else None
    info = field_at(section_at(model, place[:-1]), place[-1])
    return info.examples[0] if info and info.is_required() and info.examples else None


def touches(broken: Iterable[Place], *read: str) -> bool:
    """Whether a check that reads these paths (such as `streams.*.schema`) would read something broken."""
    for place in broken:
        steps = ["*" if isinstance(step, int) else str(step) for step in place]
        for path in read:
            wanted = path.split(".")
            common = min(len(wanted), len(steps))
            if wanted[:common] == steps[:common]:
                return True
    return False
