"""Could every group be recovered from what the stores hold now? Asked after every write that takes something away.

A group is recovered from its checkpoint at the newest tag <= committed(group) and the records after it. So there must
be such a tag (or the group's chain must be whole, so that it can begin empty), and the log must not begin later.
"""

from joinery.machine.log import BEFORE_ALL
from joinery.machine.orders import TrimCheckpoint, TrimLog, WriteHeads
from joinery.model.errors import Bug, require
from joinery.model.ids import GroupId, RecordNo
from joinery.simulate.stores import Stores


class Recovery:
    """Watches the stores."""

    def __init__(self, partitions: int, stores: Stores) -> None:
        self._stores = stores
        self.committed: list[RecordNo] = [BEFORE_ALL] * partitions
        """As the last durable commit says."""

    def check_trim(self, groups: list[int], tags: list[int]) -> None:
        """A worker is told that nobody will load these groups below these tags."""
        for group, tag in zip(groups, tags, strict=True):
            most = self.committed[group]
            require(tag <= most, f"group {group} is to be trimmed to {tag}, but committed is {most}")

    def log_trimmed(self, order: TrimLog) -> None:
        """Records are gone."""
        del order
        self._check(range(len(self.committed)))

    def heads_written(self, order: WriteHeads) -> None:
        """Chains have changed."""
        self._check([group for group, *_ in order.heads])

    def checkpoint_trimmed(self, order: TrimCheckpoint) -> None:
        """Increments are gone."""
        self._check([order.group])

    def _check(self, groups: range | list[GroupId]) -> None:
        begins = self._stores.log.read()[0].next_record
        for group in groups:
            tag = self.tag_of(GroupId(group))
            require(
                begins <= tag + 1,
                f"group {group} could only be recovered at tag {tag}, but the log begins with {begins}",
            )

    def tag_of(self, group: GroupId) -> RecordNo:
        """Where a recovery of the group would begin."""
        tags, base = self._stores.checkpoints.tags(group)
        committed = self.committed[group]
        fits = [tag for tag in tags if tag <= committed]
        if not fits and base is not None:
            raise Bug(f"group {group}: of the tags {tags} after base {base} none is <= committed, {committed}")
        return max(fits, default=BEFORE_ALL)
