"""The dashboard of a run on this machine: served by the runner, so it outlives the processes that it shows."""

import time
from typing import TYPE_CHECKING, Final

from joinery.adapters.dashboard import Dashboard, Film, Other, Sight
from joinery.adapters.http_probes import Answer, Probes, place_of
from joinery.adapters.metrics import page_of
from joinery.adapters.metrics_roles import overview_samples
from joinery.cli.running import all_running
from joinery.model.errors import UserMustAct

if TYPE_CHECKING:
    from joinery.cli.local import LocalRun

USUAL: Final = "127.0.0.1:7480"
"""Where it is if nobody says; taken: at any free port."""
OFF: Final = "off"


class LocalDashboard:
    """Between its making and `close`."""

    def __init__(self, run: "LocalRun", address: str) -> None:
        self._run = run
        self._probes = _opened(address)
        self._probes.pages["/metrics"] = self._metrics
        host = place_of(address)[0] or "127.0.0.1"  # a free port in place of the usual one is on the same host
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self._probes.port}/"
        self._board = Dashboard(self._probes, Film(run.progress.name, "local"), self._sight)

    def close(self) -> None:
        """The last frame, then no more answers."""
        self._board.close()
        self._probes.close()

    def _sight(self) -> Sight:
        run = self._run
        others = [one for one in all_running() if one.dashboard and one.dashboard != self.url]
        return Sight(
            view=run.progress.last,
            spec=run.operator.spec,
            now_ns=time.time_ns(),
            decision=run.operator.last_decision,
            change=run.last_change,
            notes=tuple(run.progress.notes),
            others=tuple(Other(one.name, one.dashboard) for one in others),
        )

    def _metrics(self) -> Answer:
        view, spec = self._run.progress.last, self._run.operator.spec
        samples = [] if view is None else overview_samples(view, spec, time.time_ns())
        return page_of(samples, {"joinquery": self._run.progress.name})


def _opened(address: str) -> Probes:
    try:
        return Probes(address)
    except UserMustAct as taken:
        if address != USUAL:
            raise UserMustAct(str(taken).replace("--http", "--dashboard")) from taken
        return Probes(f"{USUAL.partition(':')[0]}:0")
