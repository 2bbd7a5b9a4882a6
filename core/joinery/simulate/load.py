"""The load simulator: does this cluster keep up, and what do the rules do about it?

It answers what the papers' experiments ask (delay, idle time, communication, degree over time) in seconds instead of
hours. Real here: the key distribution and its hash, the partition map, the slots, the extendible directories, the load
reports, classification, pairing, plans and both degree rules. Modelled: time. Work is counted from the sizes of windows
and charged by a `CostModel`; no tuple is made and no pair is looked at.

The same settings, profiles and costs give the same run, to the last digit.
"""

from collections.abc import Sequence

from joinery.generate.profiles import RateProfile
from joinery.simulate.costs import CostModel
from joinery.simulate.load_cluster import Cluster
from joinery.simulate.load_control import Control
from joinery.simulate.load_gateway import SimGateway
from joinery.simulate.load_input import Arrivals
from joinery.simulate.load_result import LoadRun
from joinery.simulate.load_settings import LoadSettings


def simulate(settings: LoadSettings, costs: CostModel, profiles: RateProfile | Sequence[RateProfile]) -> LoadRun:
    """Run until `settings.until_ns`; one profile holds for every stream."""
    streams = len(settings.windows_ns)
    each = [profiles] * streams if isinstance(profiles, RateProfile) else list(profiles)
    arrivals = Arrivals.drawn(settings, each)
    cluster = Cluster.begin(settings, costs, SimGateway(settings, costs, arrivals))
    control = Control(settings, cluster)
    slot, reorganize_ns = cluster.next_slot(None), settings.reorganization_ns
    while slot.start_ns < settings.until_ns:
        cluster.settle(slot.start_ns)
        while reorganize_ns <= slot.start_ns:
            control.reorganize(reorganize_ns)
            reorganize_ns += settings.reorganization_ns
        cluster.serve(slot)
        slot = cluster.next_slot(slot)
    cluster.settle(settings.until_ns)
    while reorganize_ns <= settings.until_ns:
        control.reorganize(reorganize_ns)
        reorganize_ns += settings.reorganization_ns
    return control.story()
