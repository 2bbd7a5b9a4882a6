"""Versions of a stored table, as the gateway follows them (docs/hybrid.md).

Rule 1: a version that somebody told of becomes an entry of the next record, and holds from the record after it on; a
        batch never reaches over it (`machine.serving`).
Rule 2: a version is needed as long as a record can be asked for that is joined with it: until the log is trimmed beyond
        the entry of the next one. The one who keeps the segments hears which is the oldest.
"""

from joinery.machine.backlog import Backlog
from joinery.machine.intake import Intake
from joinery.machine.log import version_at
from joinery.machine.orders import Order
from joinery.machine.serving import Serving
from joinery.machine.table_orders import AskTable


class Tables:
    """One question at a time: which version is there now?"""

    def __init__(self, intake: Intake, serving: Serving) -> None:
        self._intake, self._is_asking = intake, False
        serving.tables = lambda: intake.head.tables

    def ask(self, backlog: Backlog) -> list[Order]:
        """Ask for the newest version, and say which are still needed; nothing if there is no table."""
        if self._intake.plan.table is None or self._is_asking:
            return []
        self._is_asking = True
        self._intake.forget_tables(backlog.first)
        return [AskTable(version_at(self._intake.head.tables, backlog.first))]

    def answered(self, version: int) -> list[Order]:
        """There is this version: the next record tells it."""
        self._is_asking = False
        self._intake.table_is(version)
        return []
