"""Memory twins of the stores: what a real one keeps on disk, kept in dictionaries, with the same refusals.

The simulator runs on them, and the contract suites (tests/contract) hold them and the real ones to the same promises.
They are strict: a call that no correct machine makes (a gap in the log, an increment that continues nothing) is a
`Bug` here, where a real store would lose rows in silence.

Rule 1: a repeated call changes nothing (`ports`, rule 1). What was opened by an instance is its own for good: its term
        is never given twice, and never raised twice for one instance.
Rule 2: a write under a lower term or map version than the stored one is refused in the same step, before anything else
        about it is looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from joinery.join.state import Increment
from joinery.machine.log import BEFORE_ALL, Head, Record
from joinery.machine.ports import Chain, Commit, Damage, Stale
from joinery.model.errors import Bug, require
from joinery.model.ids import GroupId, MapVersion, RecordNo, Term
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import KeptSpec
from joinery.partition.map import StoredMap


class MemoryClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now_ns: int = 0) -> None:
        self._now_ns = now_ns

    def now_ns(self) -> int:
        return self._now_ns

    def move(self, by_ns: int) -> None:
        """Let time pass, or the clock jump back."""
        self._now_ns += by_ns


class Terms:
    """Who has a role: every instance that opened got a term of its own, and the greatest one counts."""

    def __init__(self) -> None:
        self._term_of: dict[str, Term] = {}

    @property
    def newest(self) -> Term:
        return Term(len(self._term_of))

    def open(self, instance: str) -> Term:
        """The instance's term; a new instance gets the next one."""
        return self._term_of.setdefault(instance, Term(len(self._term_of) + 1))

    def check(self, term: Term) -> None:
        """Refuse a caller whose role was taken over."""
        if term < self.newest:
            raise Stale(self.newest, term)
        require(term == self.newest, f"a write under term {term}, but only {self.newest} were ever opened")


class MemoryLog:
    """Twin of `ports.Log`."""

    def __init__(self) -> None:
        self._terms = Terms()
        self._head: Head | None = None
        self._records: dict[RecordNo, Record] = {}
        self._next = RecordNo(0)
        self._first_of_term = RecordNo(0)
        """The first record that the newest term may write."""
        self._map: StoredMap | None = None
        self._spec: KeptSpec | None = None

    def open(self, first: Head, instance: str, spec: JoinQuerySpec | None = None) -> Term:  # noqa: ARG002
        before, term = self._terms.newest, self._terms.open(instance)
        if self._head is None:
            self._head, self._next = first, first.next_record
        if term > before:
            self._first_of_term = self._next
        return term

    def append(self, term: Term, number: RecordNo, record: Record) -> None:
        self._terms.check(term)
        if self._first_of_term <= number < self._next:
            return
        require(number == self._next, f"record {number} was appended, the next one is {self._next}")
        self._records[number] = record
        self._next = RecordNo(number + 1)

    def read(self) -> tuple[Head, list[tuple[RecordNo, Record]]]:
        return self._opened(), list(self._records.items())

    def trim(self, term: Term, head: Head, keep_from: RecordNo) -> None:
        self._terms.check(term)
        require(
            keep_from <= head.next_record <= self._next,
            f"a trim to the head of record {head.next_record} that keeps from {keep_from}; the next is {self._next}",
        )
        if head.next_record > self._opened().next_record:
            self._head = head
        self._records = {number: record for number, record in self._records.items() if number >= keep_from}

    def tidy(self) -> int | None:
        """Nothing is left to give back."""
        return None

    def write_map(self, term: Term, stored: StoredMap) -> None:
        self._terms.check(term)
        self._map = _copy_of(stored)

    def read_map(self) -> StoredMap | None:
        return None if self._map is None else _copy_of(self._map)

    def write_spec(self, term: Term, kept: KeptSpec) -> None:
        self._terms.check(term)
        self._spec = kept

    def read_spec(self) -> KeptSpec | None:
        return self._spec

    def _opened(self) -> Head:
        require(self._head is not None, "the log was never opened; call open first")
        return cast("Head", self._head)


def _copy_of(stored: StoredMap) -> StoredMap:
    return {
        "version": stored["version"],
        "workers": list(stored["workers"]),
        "owners": list(stored["owners"]),
        "terms": list(stored["terms"]),
    }


_Block = tuple[str, GroupId, RecordNo, RecordNo]
"""Where an increment lies: instance, group, since, tag."""
_UNCLAIMED: Final = MapVersion(0)


@dataclass(slots=True)
class _GroupHead:
    """What counts of a group's checkpoint."""

    claimed: MapVersion = _UNCLAIMED
    blocks: list[_Block] = field(default_factory=list)
    base: RecordNo | None = None

    @property
    def end(self) -> RecordNo | None:
        """The tag that the next increment continues; None: nothing is here."""
        return self.blocks[-1][3] if self.blocks else self.base


class MemoryCheckpoints:
    """Twin of `ports.CheckpointStore`."""

    def __init__(self) -> None:
        self._blocks: dict[_Block, Increment] = {}
        self._heads: dict[GroupId, _GroupHead] = {}
        self._damaged: dict[_Block, str] = {}

    def write_blocks(self, instance: str, increments: Sequence[Increment]) -> None:
        for one in increments:
            block = (instance, one.group, BEFORE_ALL if one.since is None else one.since, one.tag)
            self._blocks[block] = one
            self._damaged.pop(block, None)

    def write_heads(
        self, instance: str, version_of: dict[GroupId, MapVersion], tag_of: dict[GroupId, tuple[RecordNo, RecordNo]]
    ) -> tuple[GroupId, ...]:
        refused = []
        for group, (since, tag) in tag_of.items():
            head = self._heads.setdefault(group, _GroupHead())
            if version_of[group] < head.claimed:
                refused.append(group)
                continue
            head.claimed = version_of[group]
            self._add(head, (instance, group, since, tag))
        return tuple(refused)

    def _add(self, head: _GroupHead, block: _Block) -> None:
        _, group, since, tag = block
        require(block in self._blocks, f"a head of group {group} names {block}, which nobody wrote; write blocks first")
        is_whole = since == BEFORE_ALL
        kept = [held for held in head.blocks if (held[3] < tag if is_whole else held[3] <= since)]
        end = kept[-1][3] if kept else head.base
        if not is_whole and end != since:
            have = [held[3] for held in head.blocks]
            raise Bug(f"an increment ({since}, {tag}] of group {group} continues none of {have} after base {head.base}")
        gone = [held for held in head.blocks if held not in kept and held != block]
        head.blocks = [*kept, block]
        for held in gone:
            del self._blocks[held]

    def read(self, group: GroupId, version: MapVersion | None, known: Sequence[RecordNo]) -> Chain:
        head = self._heads.setdefault(group, _GroupHead())
        if version is not None:
            if version < head.claimed:
                raise Stale(head.claimed, version)
            head.claimed = version
        tags = tuple(block[3] for block in head.blocks)
        unknown = [block for block in head.blocks if block[3] not in known]
        damaged = tuple(self._damage_of(block) for block in unknown if block in self._damaged)
        increments = tuple(self._blocks[block] for block in unknown if block not in self._damaged)
        return Chain(tags, increments, head.base, damaged, f"chain:{group}")

    def _damage_of(self, block: _Block) -> Damage:
        instance, group, since, tag = block
        rows = sum(len(batch) for batch in self._blocks[block].rows)
        return Damage(tag, f"block:{group}:{since}:{tag}:{instance}", self._damaged[block], rows)

    def damage(self, group: GroupId, tag: RecordNo, reason: str) -> None:
        """What a disk, a stranger or a mistake can do to a block that counts."""
        [block] = [held for held in self._heads[group].blocks if held[3] == tag]
        self._damaged[block] = reason

    def trim(self, group: GroupId, version: MapVersion, base: RecordNo) -> None:
        head = self._heads.setdefault(group, _GroupHead())
        if version < head.claimed:
            return
        for block in [held for held in head.blocks if held[3] <= base]:
            head.blocks.remove(block)
            head.base = block[3]
            del self._blocks[block]

    def tags(self, group: GroupId) -> tuple[tuple[RecordNo, ...], RecordNo | None]:
        """The tags that count and the base, for whoever watches: claims nothing."""
        head = self._heads.get(group)
        return ((), None) if head is None else (tuple(block[3] for block in head.blocks), head.base)


class MemoryCommits:
    """Twin of `ports.CommitStore`."""

    def __init__(self) -> None:
        self._terms = Terms()
        self._last: tuple[Term, Commit] | None = None

    def open(self, instance: str) -> tuple[Term, Commit | None]:
        return self._terms.open(instance), self.last

    @property
    def last(self) -> Commit | None:
        """The commit that counts, for whoever watches."""
        return None if self._last is None else self._last[1]

    def write(self, term: Term, commit: Commit) -> None:
        self._terms.check(term)
        written, number = (Term(0), 0) if self._last is None else (self._last[0], self._last[1].number)
        if written == term and commit.number == number:
            return
        require(commit.number == number + 1, f"commit {commit.number} under term {term}; the next one is {number + 1}")
        self._last = (term, commit)
