"""Ports: what the machines need of the outside, as small protocols; each has a memory twin and one contract suite.

Rule 1: every call is idempotent. A shell whose answer got lost calls again, with the same arguments, until it is
        answered; a crash between a call and its answer is the same thing.
Rule 2: writes that matter compare the caller's term (log, map, commit) or map version (checkpoint head) with the
        stored one, in the same step, and are refused if a newer one is there. `Stale` says so; nothing was written.
Rule 3: what was answered survives a crash of everybody, as far as the durability promises.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from joinery.join.results import ResultPart
from joinery.join.state import Increment
from joinery.machine.log import Head, Record
from joinery.machine.totals import Totals
from joinery.model.errors import JoineryError
from joinery.model.ids import GroupId, MapVersion, RecordNo, Term
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import KeptSpec
from joinery.model.time import DEAD
from joinery.model.tuples import I64Array
from joinery.partition.map import StoredMap


class Stale(JoineryError):
    """A newer instance has the role, or a newer map version owns the group: stop, do not try again."""

    def __init__(self, held: int, own: int) -> None:
        self.held, self.own = held, own
        super().__init__(f"found {held} in the store, wanted at most our own {own}; another instance has taken over")


class Clock(Protocol):
    """Nanoseconds of wall time; may jump, and no machine relies on more than that."""

    def now_ns(self) -> int: ...


class Log(Protocol):
    """The query's log, the gateway's term, the partition map and the spec in force."""

    def open(self, first: Head, instance: str, spec: JoinQuerySpec | None = None) -> Term:
        """Raise the term (once per instance); a new log starts with the head `first` of this spec."""
        ...

    def append(self, term: Term, number: RecordNo, record: Record) -> None:
        """Write record `number`, the one after the last; again with the same term and number: no effect."""
        ...

    def read(self) -> tuple[Head, list[tuple[RecordNo, Record]]]:
        """The head (as after the trim point), and all kept records in order, some perhaps from before the head."""
        ...

    def trim(self, term: Term, head: Head, keep_from: RecordNo) -> None:
        """Make `head` the head and drop the records before `keep_from`; never goes back."""
        ...

    def tidy(self) -> int | None:
        """Give back to the system what trims have freed, if it pays; called while nothing moves.

        The bytes that the store takes, with all that is in it; None: it did not look.
        """
        ...

    def write_map(self, term: Term, stored: StoredMap) -> None:
        """Replace the map."""
        ...

    def read_map(self) -> StoredMap | None: ...

    def write_spec(self, term: Term, kept: KeptSpec) -> None:
        """Replace the spec in force."""
        ...

    def read_spec(self) -> KeptSpec | None:
        """The spec in force; None: it is the one that the log started with."""
        ...


@dataclass(frozen=True, slots=True)
class Damage:
    """An increment that is not what was written: corrupted, truncated, foreign, of another format, or not there."""

    tag: RecordNo
    key: str
    """Where it lies, in the store's own words."""
    reason: str
    rows: int = 0
    """How many it held, as far as that can still be seen."""


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """A group's checkpoint: increments in the order of their tags."""

    tags: tuple[RecordNo, ...]
    """Of every increment that the head names."""
    increments: tuple[Increment, ...]
    """Those that the reader did not know yet."""
    base: RecordNo | None = None
    """Increments up to this tag are gone: nothing in them was alive any more; None: the chain is whole."""
    damaged: tuple[Damage, ...] = ()
    """Those that the reader did not know and that cannot be read; what they hold is never guessed."""
    key: str = ""
    """Where the head lies, in the store's own words."""


class CheckpointStore(Protocol):
    """The checkpoints of all groups of a query."""

    def write_blocks(self, instance: str, increments: Sequence[Increment]) -> None:
        """Write increments under the instance's name; they count only once a head names them."""
        ...

    def write_heads(
        self, instance: str, version_of: dict[GroupId, MapVersion], tag_of: dict[GroupId, tuple[RecordNo, RecordNo]]
    ) -> tuple[GroupId, ...]:
        """Append to each group's chain the increment (since, tag]; since -1: a whole state, which needs none before it.

        Those before a whole state stay until they are trimmed: the group may have to be loaded at one of them.

        Groups claimed under a newer version are refused (and returned); tags after `since` that are in the head are
        dropped from it: they were a former owner's.
        """
        ...

    def read(self, group: GroupId, version: MapVersion | None, known: Sequence[RecordNo]) -> Chain:
        """The group's chain without the increments of `known` tags; a version claims it, `Stale` if a newer did."""
        ...

    def trim(self, group: GroupId, version: MapVersion, base: RecordNo) -> None:
        """Drop the increments up to the tag `base`: nothing in them is alive. No effect under an older version."""
        ...


@dataclass(frozen=True, slots=True)
class Receipt:
    """What of a sink is valid after a commit, in the sink's own words (a length, a count)."""

    sink: str
    valid: int


@dataclass(frozen=True, slots=True, eq=False)
class Commit:
    """One durable step of the output: which batches are in it, and what of each sink is valid."""

    number: int
    committed: I64Array
    """Per group: everything up to this record has been given out."""
    receipts: tuple[Receipt, ...] = ()
    seen: I64Array | None = field(default=None)
    """Output in order: what was taken of each group; its rows before `before_ns` have been given out, no others."""
    before_ns: int = DEAD
    totals: Totals = field(default_factory=Totals)
    """Rows of this commit and of all before it."""


class CommitStore(Protocol):
    """The collector's term and its last commit."""

    def open(self, instance: str) -> tuple[Term, Commit | None]:
        """Raise the term (once per instance) and read the last commit."""
        ...

    def write(self, term: Term, commit: Commit) -> None:
        """The commit is valid from now on; the same number under the same term again: no effect."""
        ...


class Sink(Protocol):
    """Where committed results go: staged first, valid once a commit says how much of it is."""

    name: str

    def recover(self, term: Term, valid: Receipt | None) -> None:
        """A collector of this term begins: what is beyond the receipt was never valid."""
        ...

    def stage(self, number: int, parts: Sequence[ResultPart]) -> Receipt:
        """Write the rows of commit `number`; the same number again replaces what was staged for it."""
        ...

    def finish(self, valid: Receipt | None) -> None:
        """The output is complete; `Stale` if a collector of a newer term has begun: then it is the one to finish it."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """Results that a subscriber can still ask for, by their commits."""

    first: int
    """No result of this commit or of a later one is missing."""
    commits: tuple[tuple[int, tuple[ResultPart, ...]], ...] = ()
    """Those with results, in their order."""


class Retained(Sink, Protocol):
    """The last results, for subscribers who come back to another collector (`retaining`)."""

    def keep(self, first: int) -> None:
        """Somebody subscribes: keep what was staged from this commit on, and all that follows."""
        ...

    def read(self) -> Kept | None:
        """What is kept and valid, after `recover`; None: nobody has ever subscribed."""
        ...
