"""How a worker comes by the state of a group: preloaded while another still owns it, then claimed and restored.

Rule 1: a preload reads and claims nothing. The claim comes with the assignment, under the new map version; after it no
        former owner can write the group's head, and it reads only what the preload has not.
Rule 2: of the chain only the increments up to the newest tag <= committed(group) are used. Newer ones are true as
        well, but results after committed(group) must be made again, and so must be joined again.
"""

from joinery.join.state import Age, Increment
from joinery.machine.facts import CheckpointRead
from joinery.machine.log import BEFORE_ALL, SpecChange
from joinery.machine.orders import Order, ReadCheckpoint, RestoreGroup
from joinery.machine.ports import Chain
from joinery.model.errors import require
from joinery.model.ids import GroupId, MapVersion, RecordNo


class Loading:
    """Increments that were read before their group was assigned."""

    def __init__(self) -> None:
        self._preloads: dict[GroupId, dict[RecordNo, Increment]] = {}
        self._ages: dict[GroupId, tuple[Age, ...]] = {}

    def preload(self, groups: list[GroupId]) -> list[Order]:
        """Read what is new of these groups."""
        return [ReadCheckpoint(group, None, self._known(group)) for group in groups]

    def preloaded(self, group: GroupId, chain: Chain) -> RecordNo | None:
        """Keep what was read; the newest tag, or None: what was known before is gone, so it must be read again."""
        have = self._put_together(group, chain)
        if not _follow_each_other(have, chain):
            self.forget(group)
            return None
        self._preloads[group] = have
        return max(chain.tags, default=BEFORE_ALL)

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
        usable = [have[tag] for tag in sorted(chain.tags) if tag <= silent]
        require(
            bool(usable) or chain.base is None,
            f"group {group}: no checkpoint up to {silent}, and those up to {chain.base} are gone",
        )
        self.forget(group)
        self._ages[group] = tuple(Age.of(increment) for increment in usable)
        wholes = [place for place, increment in enumerate(usable) if increment.since is None]
        increments = tuple(usable[wholes[-1] if wholes else 0 :])
        return RestoreGroup(group, version, increments, increments[0].since if increments else None, changes)

    def ages(self, group: GroupId) -> tuple[Age, ...]:
        """Of the increments that the group was restored from."""
        return self._ages.pop(group, ())

    def forget(self, group: GroupId) -> None:
        """The group went elsewhere, or is restored."""
        self._preloads.pop(group, None)
        self._ages.pop(group, None)

    def _known(self, group: GroupId) -> tuple[RecordNo, ...]:
        return tuple(sorted(self._preloads.get(group, ())))

    def _put_together(self, group: GroupId, chain: Chain) -> dict[RecordNo, Increment]:
        known = self._preloads.get(group, {}) | {increment.tag: increment for increment in chain.increments}
        return {tag: known[tag] for tag in chain.tags if tag in known}


def _follow_each_other(have: dict[RecordNo, Increment], chain: Chain) -> bool:
    """Whether every increment of the chain is there and continues the one before it.

    A preload may hold (5, 10] of an owner that has been replaced, while the chain by now has (5, 7] and (7, 10].
    """
    before = chain.base
    for tag in sorted(chain.tags):
        if tag not in have or have[tag].since not in (None, before):
            return False
        before = tag
    return True
