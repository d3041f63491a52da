"""Windows: the steps between micro-batches (docs/grouping.md, 1, 4 and 5)."""

from collections.abc import Sequence
from operator import add
from typing import NamedTuple

from model.vocabulary import GroupingConfig
from spark_impl.grouping.keys import (
    Table,
    find_heavy_keys,
    merge_all,
    place_buckets,
    summary_capacity,
)
from spark_impl.grouping.router import SenderState


class Standing(NamedTuple):
    """The progress of a stream, which all routers share."""

    batch: int
    """Number of micro-batches with rows."""
    tuples: int
    """Number of tuples routed in this window."""
    routed: int
    """Number of tuples routed so far."""
    table: Table
    measured: tuple[int, ...] = ()
    """Times for the next window, if they are measured and not configured."""
    worked: tuple[int, ...] = ()
    """Number of timed tuples of this window, by instance."""
    busy_us: tuple[int, ...] = ()
    """Time that they took, by instance."""


def start(config: GroupingConfig) -> Standing:
    """Return the progress before the first micro-batch."""
    return Standing(0, 0, 0, Table(0, config.times_of(0), {}, 0))


def add_times(standing: Standing, spent: Sequence[tuple[int, int]]) -> Standing:
    """Add the tuples and microseconds of a micro-batch, given for every instance."""
    worked, busy_us = zip(*spent, strict=True)
    if not any(worked):
        return standing
    return standing._replace(
        worked=_add(standing.worked, worked), busy_us=_add(standing.busy_us, busy_us)
    )


def _add(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(add, one or (0,) * len(other), other))


def mean_times(
    config: GroupingConfig, standing: Standing, transfer_us: Sequence[int] = ()
) -> tuple[int, ...]:
    """Return the mean time of a tuple at each instance in this window; empty without measurements.

    An instance without a tuple keeps its time. If it has none, it gets the mean of the others. No
    time is shorter than the ``transfer_us`` of the instance.
    """
    if not any(standing.worked):
        return standing.measured
    mean = sum(standing.busy_us) / sum(standing.worked)
    configured = config.times_of(standing.batch) if config.times_us else ()
    known = standing.measured or configured or (mean,) * config.instances
    spent = zip(standing.busy_us, standing.worked, known, strict=True)
    found = (busy_us / tuples if tuples else last for busy_us, tuples, last in spent)
    least_us = transfer_us or (1,) * config.instances
    return tuple(max(least, round(each)) for least, each in zip(least_us, found, strict=True))


def is_full(config: GroupingConfig, tuples: int) -> bool:
    """Return whether a micro-batch ends the window, given the tuples in it at its end."""
    return tuples >= config.window_tuples


def advance(
    config: GroupingConfig,
    standing: Standing,
    senders: Sequence[SenderState],
    tuples: int,
    transfer_us: Sequence[int] = (),
) -> Standing:
    """Return the progress after a micro-batch; a full window is followed by a rebalance."""
    after = standing._replace(
        batch=standing.batch + (tuples > 0),
        tuples=standing.tuples + tuples,
        routed=standing.routed + tuples,
    )
    if not is_full(config, after.tuples):
        return after
    measured = mean_times(config, after, transfer_us)
    times = measured or config.times_of(after.batch)
    return after._replace(
        tuples=0,
        table=rebalance(config, after.table, senders, times, config.tiers_of(after.batch)),
        measured=measured,
        worked=(),
        busy_us=(),
    )


def rebalance(
    config: GroupingConfig,
    before: Table,
    senders: Sequence[SenderState],
    times: tuple[int, ...],
    tiers: tuple[int, ...] = (),
) -> Table:
    """Return the table of the next window; without ``tiers``, those of the configuration count."""
    summary = merge_all((each.summary for each in senders), summary_capacity(config.eps_share))
    heavy = find_heavy_keys(config, summary)
    table = before._replace(
        window=before.window + 1, times=times, heavy=heavy, tuples=summary.tuples, tiers=tiers
    )
    if config.policy == "dkg" and before.buckets is None:
        buckets = [sum(each) for each in zip(*(one.buckets for one in senders), strict=True)]
        found, places = place_buckets(config, heavy, buckets)
        table = table._replace(placed=found, buckets=places)
    return table
