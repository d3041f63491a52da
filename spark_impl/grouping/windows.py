"""Windows: what comes between the micro-batches (docs/grouping.md, 1, 4 and 5)."""

from collections.abc import Sequence
from typing import NamedTuple

from model.vocabulary import GroupingConfig
from spark_impl.grouping.candidates import choices
from spark_impl.grouping.router import SenderState
from spark_impl.grouping.summaries import capacity, merged_all
from spark_impl.grouping.table import Table, heavy_keys, placed


class Standing(NamedTuple):
    """Where a stream has come to: what routers share."""

    batch: int
    """The next micro-batch."""
    tuples: int
    """Routed in this window."""
    routed: int
    """Routed so far."""
    table: Table
    measured: tuple[int, ...] | None = None
    """Times for the next window, where they are measured and not configured."""
    source_batch: int = -1
    """What the source calls the micro-batch that came last."""


def start(config: GroupingConfig) -> Standing:
    """Before the first micro-batch."""
    return Standing(0, 0, 0, Table(0, config.times_of(0), {}, 0))


def advanced(
    config: GroupingConfig,
    standing: Standing,
    senders: Sequence[SenderState],
    tuples: int,
    measured: tuple[int, ...] | None = None,
) -> Standing:
    """After a micro-batch of so many tuples; a full window is followed by a rebalance."""
    after = standing._replace(
        batch=standing.batch + 1,
        tuples=standing.tuples + tuples,
        routed=standing.routed + tuples,
        measured=measured or standing.measured,
    )
    if after.tuples < config.window_tuples:
        return after
    times = after.measured or config.times_of(after.batch)
    return after._replace(tuples=0, table=rebalanced(config, after.table, senders, times))


def rebalanced(
    config: GroupingConfig, before: Table, senders: Sequence[SenderState], times: tuple[int, ...]
) -> Table:
    """The table of the next window."""
    summary = merged_all((each.summary for each in senders), capacity(config.eps_share))
    heavy = heavy_keys(config, summary)
    table = before._replace(
        window=before.window + 1, times=times, heavy=heavy, tuples=summary.tuples
    )
    if config.policy == "d-choices":
        shares = [key.counted / summary.tuples for key in heavy.values()]
        table = table._replace(choices=choices(config.instances, shares))
    if config.policy == "dkg" and before.buckets is None:
        buckets = [sum(each) for each in zip(*(one.buckets for one in senders), strict=True)]
        found, places = placed(config, heavy, buckets)
        table = table._replace(placed=found, buckets=places)
    return table
