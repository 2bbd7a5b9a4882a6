"""How a worker comes by the state of a group: preloaded while another still owns it, then claimed and restored.

Rule 1: a preload reads and claims nothing. The claim comes with the assignment, under the new map version; after it no
        former owner can write the group's head, and it reads only what the preload has not.
Rule 2: what a preload has read first is put in place at once (`PrepareGroup`), piece by piece, so that the groups that
        are here go on meanwhile. The gateway is told when it is in place, and not before, whatever is read meanwhile;
        what it reads later is kept until the assignment. So the hand-over adds little, however large the window is.
Rule 3: of the chain only the increments up to the newest tag <= committed(group) are used. Newer ones are true as
        well, but results after committed(group) must be made again, and so must be joined again.
Rule 4: a damaged increment is never used. It matters only if the state at the newest tag <= committed(group) needs it:
        it does not if a whole state follows it. If it does, the group is put back at the newest older tag that a whole
        state leads to (else empty), and the gateway is told: it knows whether the log still reaches back to there.
        Increments that were trimmed are dead at later tags only, so what begins with the base leads to no older tag;
        but a preload that was read whole leads to its own newest tag, whatever was trimmed or damaged since.
Rule 5: one preload of a group is read at a time. What became new meanwhile is read after it: then it is known what is
        not new, and a large group is not read twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from joinery.join.state import Age, Increment
from joinery.machine.facts import CheckpointRead, GroupPrepared
from joinery.machine.log import BEFORE_ALL, SpecChange
from joinery.machine.messages import UNCLAIMED, CheckpointDamaged
from joinery.machine.orders import Order, PrepareGroup, PrepareMore, ReadCheckpoint, RestoreGroup
from joinery.machine.ports import Chain, Damage
from joinery.model.errors import require
from joinery.model.ids import GroupId, MapVersion, RecordNo


class Loading:
    """Increments that were read before their group was assigned."""

    def __init__(self) -> None:
        self._preloads: dict[GroupId, dict[RecordNo, Increment]] = {}
        self._ages: dict[GroupId, tuple[Age, ...]] = {}
        self._damages: dict[GroupId, CheckpointDamaged] = {}
        self._wholes: dict[GroupId, dict[RecordNo, tuple[Increment, ...]]] = {}
        """Of each preload: what led to its newest tag when it was read (rule 4)."""
        self.prepared: set[GroupId] = set()
        """Groups that were put in place, or soon will be."""
        self.preparing: set[GroupId] = set()
        """Those of them that are not in place yet."""
        self._under_way: dict[GroupId, bool] = {}
        """Preloads that are being read, and whether there is more to read by now (rule 5)."""

    def preload(self, groups: list[GroupId]) -> list[Order]:
        """Read what is new of these groups."""
        self._under_way.update({group: True for group in groups if group in self._under_way})
        begin = [group for group in groups if group not in self._under_way]
        self._under_way.update(dict.fromkeys(begin, False))
        return [ReadCheckpoint(group, None, self._known(group)) for group in begin]

    def has_more(self, group: GroupId) -> bool:
        """A preload was read; whether it should be followed by another."""
        return self._under_way.pop(group, False)

    def preloaded(self, group: GroupId, chain: Chain) -> RecordNo | CheckpointDamaged | None:
        """Keep what was read; the newest tag, or None: what was known before is gone, so it must be read again."""
        have = self._put_together(group, chain)
        if not _follow_each_other(have, chain):
            self.forget(group)
            return None
        newest = max(chain.tags, default=BEFORE_ALL)
        found = _usable(have, chain, newest)
        if found.damage is not None:  # what is written anew may have a tag that is known, so nothing is
            return found.told(group, UNCLAIMED, found.damage)
        self._preloads[group] = have
        self._wholes.setdefault(group, {})[newest] = found.increments
        return newest

    def prepare(self, group: GroupId, changes: tuple[SpecChange, ...]) -> PrepareGroup | None:
        """Put what was preloaded in place (rule 2); None: it is, or there is nothing."""
        have = self._preloads.get(group, {})
        if not have or group in self.prepared:
            return None
        self.prepared.add(group)
        self.preparing.add(group)
        increments = _from_last_whole([have[tag] for tag in sorted(have)])
        return PrepareGroup(group, increments, increments[0].since, changes)

    def next_piece(self, done: GroupPrepared) -> list[Order]:
        """A piece is in place: order the next one, unless it was the last."""
        if done.is_whole:
            self.preparing.discard(done.group)
        return [PrepareMore(done.group)] if done.group in self.preparing else []

    def knows(self, group: GroupId) -> bool:
        """Whether a preload of the group was read, if only that there is nothing."""
        return group in self._preloads

    def claim(self, group: GroupId, version: MapVersion) -> list[Order]:
        """Read the rest, as the new owner."""
        return [ReadCheckpoint(group, version, self._known(group))]

    def restore(self, read: CheckpointRead, silent: RecordNo, changes: tuple[SpecChange, ...]) -> Order:
        """Put the group back at its newest tag <= committed; or read it all again if the preload is out of date."""
        group, chain, version = read.group, read.chain, read.version
        if version is None:
            raise ValueError("a preload is not restored")
        have = self._put_together(group, chain)
        if not _follow_each_other(have, chain):
            self.forget(group)
            return ReadCheckpoint(group, version, ())
        wholes = self._wholes.get(group, {})
        self.forget(group)
        found = _usable(have, chain, silent)
        if found.damage is not None:  # rule 4
            reached = [tag for tag in wholes if found.tag < tag <= silent and tag in (*chain.tags, chain.base)]
            found = replace(found, increments=wholes[max(reached)], before=wholes[max(reached)]) if reached else found
        if found.damage is not None:
            self._damages[group] = found.told(group, version, found.damage)
        self._ages[group] = tuple(Age.of(increment) for increment in found.before)
        increments = found.increments
        return RestoreGroup(group, version, increments, increments[0].since if increments else None, changes)

    def damages(self, groups: Iterable[GroupId]) -> list[CheckpointDamaged]:
        """What the gateway must know of these groups: they are not at the tag at which they should be."""
        return [self._damages[group] for group in groups if group in self._damages]

    def ages(self, group: GroupId) -> tuple[Age, ...]:
        """Of the increments that the group was restored from."""
        return self._ages.pop(group, ())

    def forget(self, group: GroupId) -> None:
        """The group went elsewhere, or is restored."""
        self._preloads.pop(group, None)
        self._ages.pop(group, None)
        self._damages.pop(group, None)
        self._wholes.pop(group, None)
        self.prepared.discard(group)
        self.preparing.discard(group)

    def _known(self, group: GroupId) -> tuple[RecordNo, ...]:
        return tuple(sorted(self._preloads.get(group, ())))

    def _put_together(self, group: GroupId, chain: Chain) -> dict[RecordNo, Increment]:
        known = self._preloads.get(group, {}) | {increment.tag: increment for increment in chain.increments}
        return {tag: known[tag] for tag in chain.tags if tag in known}


def _from_last_whole(increments: list[Increment]) -> tuple[Increment, ...]:
    """Those that count: a whole state needs none before it."""
    wholes = [place for place, increment in enumerate(increments) if increment.since is None]
    return tuple(increments[wholes[-1] if wholes else 0 :])


def _follow_each_other(have: dict[RecordNo, Increment], chain: Chain) -> bool:
    """Whether every increment of the chain is there and continues the one before it.

    A preload may hold (5, 10] of an owner that has been replaced, while the chain by now has (5, 7] and (7, 10].
    """
    before, damaged = chain.base, {damage.tag for damage in chain.damaged}
    for tag in sorted(chain.tags):
        if tag in damaged and tag not in have:
            before = tag
            continue
        if tag not in have or have[tag].since not in (None, before):
            return False
        before = tag
    return True


@dataclass(frozen=True, slots=True)
class _Usable:
    """What a group can be put back from."""

    increments: tuple[Increment, ...]
    before: tuple[Increment, ...]
    """With those that a whole state has made needless."""
    damage: Damage | None = None
    """Why it is not the newest tag."""
    rows: int = 0
    """Of the state that cannot be put back, as far as they can be counted."""

    @property
    def tag(self) -> RecordNo:
        return self.increments[-1].tag if self.increments else BEFORE_ALL

    def told(self, group: GroupId, version: MapVersion, damage: Damage) -> CheckpointDamaged:
        """What the gateway must know."""
        return CheckpointDamaged(group, version, self.tag, damage.key, damage.reason, self.rows)


def _usable(have: dict[RecordNo, Increment], chain: Chain, silent: RecordNo) -> _Usable:
    """The increments of the state at the newest tag <= silent, or of an older one if some of it is damaged (rule 4)."""
    damages = {damage.tag: damage for damage in chain.damaged}
    tags = [tag for tag in sorted(chain.tags) if tag <= silent]
    wholes = [place for place, tag in enumerate(tags) if tag in have and have[tag].since is None]
    start = wholes[-1] if wholes else 0
    broken = next((place for place in range(start, len(tags)) if tags[place] not in have), None)
    held = [have[tag] for tag in tags if tag in have]
    if broken is None and (tags or chain.base is None):
        return _Usable(tuple(have[tag] for tag in tags[start:]), tuple(held))
    if broken is None:
        require(
            bool(damages), f"group {chain.key}: no checkpoint up to {silent}, and those up to {chain.base} are gone"
        )
        reason = f"found no increment up to record {silent}, wanted those after record {chain.base}"
        return _Usable((), (), Damage(BEFORE_ALL, chain.key, reason))
    rows = sum(len(batch) for tag in tags[start:] if tag in have for batch in have[tag].rows)
    rows += sum(damages[tag].rows for tag in tags[start:] if tag not in have)
    reached = tuple(have[tag] for tag in tags[start:broken]) if wholes else ()
    older = tuple(one for one in held if reached and one.tag <= reached[-1].tag)
    return _Usable(reached, older, damages[tags[broken]], rows)
