"""What a query asks the load simulator for: settings and costs from its spec.

Rates come from generators, if the streams have any; else the caller gives a profile or a trace. A count window has no
length in time, so it cannot be simulated. `epochs.distribution: auto` becomes one fixed length (`auto_epoch_ns`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from joinery.elastic.beta import BetaRule
from joinery.elastic.classify import Thresholds
from joinery.elastic.guarded import Guards
from joinery.elastic.plan import Limits
from joinery.generate.from_spec import keys_of, rate_of
from joinery.generate.keys import Keys
from joinery.generate.profiles import RateProfile
from joinery.model.errors import BadSpec, Complaint
from joinery.model.quantities import CountWindow
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_sections import StreamSpec
from joinery.simulate.costs import CostModel
from joinery.simulate.load_settings import PAPER_KEYS, LoadSettings, Method, Rule, auto_epoch_ns

TEXT_BYTES: Final = 16
"""What a text or bytes column is taken for, without knowing any."""


def settings_of(spec: JoinQuerySpec, profiles: Sequence[RateProfile], *, until_ns: int, seed: int) -> LoadSettings:
    """The settings of a query under these rates."""
    scaling, size = spec.scaling, _tuple_bytes(spec.streams)
    rule = Rule(scaling.rule)
    thresholds = {"supplier": scaling.supplier_threshold, "consumer": scaling.consumer_threshold}
    epoch = spec.epochs.distribution
    chosen_ns = auto_epoch_ns(spec.worker.buffer, peak_hz(profiles, until_ns) * size) if epoch == "auto" else epoch
    return LoadSettings(
        windows_ns=tuple(_window_ns(stream) for stream in spec.streams),
        partitions=spec.partitions,
        keys=_keys(spec.streams),
        tuple_bytes=size,
        method=Method(spec.join.method),
        theta_bytes=spec.fine_tuning.theta if spec.fine_tuning.enabled else None,
        buffer_bytes=spec.worker.buffer,
        memory_limit=spec.worker.memory,
        epoch_ns=chosen_ns,
        reorganization_ns=spec.epochs.reorganization,
        subgroups=spec.epochs.subgroups,
        degree=spec.replicas,
        adaptive=scaling.mode == "Auto",
        rule=rule,
        scaling=BetaRule(
            beta=scaling.beta,
            min_suppliers=scaling.min_suppliers,
            step=scaling.step,
            min_degree=scaling.min,
            max_degree=scaling.max,
        ),
        guards=Guards(
            target=scaling.target, up_ns=scaling.scale_up.stabilization, down_ns=scaling.scale_down.stabilization
        ),
        thresholds=(
            Thresholds.paper(**thresholds)
            if rule is Rule.PAPER
            else Thresholds.guarded(**thresholds, target=scaling.target)
        ),
        limits=Limits(max_parallel=scaling.max_parallel_moves),
        until_ns=until_ns,
        seed=seed,
    )


def costs_of(spec: JoinQuerySpec) -> CostModel:
    """One core of today, or `worker.speed` comparisons per second; a row of a hash join counts as one comparison."""
    costs, speed = CostModel.today(), spec.worker.speed
    if speed == "unlimited":
        return costs
    each_ns = 1e9 / speed
    return replace(costs, comparison_ns=each_ns, probe_ns=max(0.0, each_ns - costs.insert_ns))


def profiles_of(spec: JoinQuerySpec) -> list[RateProfile] | None:
    """The rates of the streams' generators; None unless every stream has one."""
    sources = [stream.source.generator if stream.source else None for stream in spec.streams]
    return [rate_of(one) for one in sources if one] if all(sources) else None


def peak_hz(profiles: Sequence[RateProfile], until_ns: int) -> float:
    """The greatest rate of all streams together, looked up a thousand times."""
    times = np.linspace(0, until_ns - 1, 1000).astype(np.int64)
    return float(sum(profile.rate_at(times) for profile in profiles).max())  # type: ignore[union-attr]


def _window_ns(stream: StreamSpec) -> int:
    if isinstance(stream.window, CountWindow):
        field, remedy = f"spec.streams.{stream.name}.window", "give its usual length with --window"
        raise BadSpec([Complaint(field, str(stream.window), "a window in time for the load simulator", remedy)])
    return stream.window.length_ns


def _keys(streams: Sequence[StreamSpec]) -> Keys:
    generators = [stream.source.generator for stream in streams if stream.source and stream.source.generator]
    if not generators:
        return PAPER_KEYS
    return keys_of(generators[0].keys)


def _tuple_bytes(streams: Sequence[StreamSpec]) -> int:
    widths = [_column_bytes(kind.arrow) for stream in streams for _, kind in stream.columns]
    return max(1, round(sum(widths) / len(streams)))


def _column_bytes(kind: pa.DataType) -> int:
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:  # Arrow: a type without a fixed width
        return TEXT_BYTES
