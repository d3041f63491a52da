"""Windows: what comes between the micro-batches (docs/grouping.md, 1, 4 and 5)."""

from collections.abc import Sequence
from operator import add
from typing import NamedTuple

from model.vocabulary import GroupingConfig
from spark_impl.grouping.candidates import choices
from spark_impl.grouping.keys import (
    Table,
    find_heavy_keys,
    merge_all,
    place_buckets,
    summary_capacity,
)
from spark_impl.grouping.router import SenderState


class Standing(NamedTuple):
    """Where a stream has come to: what routers share."""

    batch: int
    """The next micro-batch."""
    tuples: int
    """Routed in this window."""
    routed: int
    """Routed so far."""
    table: Table
    measured: tuple[int, ...] = ()
    """Times for the next window, where they are measured and not configured."""
    worked: tuple[int, ...] = ()
    """Tuples of this window that each instance was timed with."""
    busy_us: tuple[int, ...] = ()
    """How long they took it."""
    source_batch: int = -1
    """What the source calls the micro-batch that came last."""


def start(config: GroupingConfig) -> Standing:
    """Before the first micro-batch."""
    return Standing(0, 0, 0, Table(0, config.times_of(0), {}, 0))


def timed(standing: Standing, spent: Sequence[tuple[int, int]]) -> Standing:
    """Add what a micro-batch took: tuples and microseconds of every instance."""
    worked, busy_us = zip(*spent, strict=True)
    if not any(worked):
        return standing
    return standing._replace(
        worked=_added(standing.worked, worked), busy_us=_added(standing.busy_us, busy_us)
    )


def told(standing: Standing, times: tuple[int, ...]) -> Standing:
    """Somebody knows the times; what was measured in this window before is forgotten."""
    return standing._replace(measured=times, worked=(), busy_us=())


def _added(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(add, one or (0,) * len(other), other))


def mean_times(config: GroupingConfig, standing: Standing) -> tuple[int, ...]:
    """What a tuple took at each instance in this window; nothing if that was never measured.

    An instance without a tuple keeps its time; if it has none it is like the mean of the others.
    """
    if not any(standing.worked):
        return standing.measured
    mean = sum(standing.busy_us) / sum(standing.worked)
    configured = config.times_of(standing.batch) if config.times_us else ()
    known = standing.measured or configured or (mean,) * config.instances
    spent = zip(standing.busy_us, standing.worked, known, strict=True)
    found = (busy_us / tuples if tuples else last for busy_us, tuples, last in spent)
    return tuple(max(1, round(each)) for each in found)


def is_full(config: GroupingConfig, tuples: int) -> bool:
    """Say whether a micro-batch ends the window, at whose end it has so many tuples."""
    return tuples >= config.window_tuples


def advanced(
    config: GroupingConfig, standing: Standing, senders: Sequence[SenderState], tuples: int
) -> Standing:
    """After a micro-batch of so many tuples; a full window is followed by a rebalance."""
    after = standing._replace(
        batch=standing.batch + 1,
        tuples=standing.tuples + tuples,
        routed=standing.routed + tuples,
    )
    if not is_full(config, after.tuples):
        return after
    measured = mean_times(config, after)
    times = measured or config.times_of(after.batch)
    return after._replace(
        tuples=0,
        table=rebalanced(config, after.table, senders, times),
        measured=measured,
        worked=(),
        busy_us=(),
    )


def rebalanced(
    config: GroupingConfig, before: Table, senders: Sequence[SenderState], times: tuple[int, ...]
) -> Table:
    """The table of the next window."""
    summary = merge_all((each.summary for each in senders), summary_capacity(config.eps_share))
    heavy = find_heavy_keys(config, summary)
    table = before._replace(
        window=before.window + 1, times=times, heavy=heavy, tuples=summary.tuples
    )
    if config.policy == "d-choices":
        shares = [key.counted / summary.tuples for key in heavy.values()]
        table = table._replace(choices=choices(config.instances, shares))
    if config.policy == "dkg" and before.buckets is None:
        buckets = [sum(each) for each in zip(*(one.buckets for one in senders), strict=True)]
        found, places = place_buckets(config, heavy, buckets)
        table = table._replace(placed=found, buckets=places)
    return table
