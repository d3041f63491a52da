"""Senders, windows and times together (docs/grouping.md, 1, 4 and 5)."""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from model.vocabulary import GroupingConfig
from spark_impl.grouping.candidates import choices
from spark_impl.grouping.router import Instances, SenderState, begun, route
from spark_impl.grouping.summaries import capacity, merged_all
from spark_impl.grouping.table import Table, heavy_keys, placed


class Progress(NamedTuple):
    """Where a stream has come to: what is kept between two micro-batches."""

    batch: int
    """The next micro-batch."""
    tuples: int
    """Routed in this window."""
    table: Table
    senders: tuple[SenderState, ...]


def start(config: GroupingConfig) -> Progress:
    """Before the first micro-batch."""
    senders = tuple(begun(config, SenderState()) for _ in range(config.senders))
    return Progress(0, 0, Table(0, config.times_of(0), {}, 0), senders)


def route_all(
    config: GroupingConfig, progress: Progress, keys: Sequence[pa.StringArray]
) -> tuple[list[Instances], list[SenderState]]:
    """The instances of a micro-batch, sender by sender."""
    found = [
        route(config, progress.table, sender, state, own)
        for sender, (state, own) in enumerate(zip(progress.senders, keys, strict=True))
    ]
    return [places for places, _ in found], [state for _, state in found]


def advanced(
    config: GroupingConfig, progress: Progress, senders: Sequence[SenderState], tuples: int
) -> Progress:
    """After a micro-batch of so many tuples; a full window is followed by a rebalance."""
    total, batch = progress.tuples + tuples, progress.batch + 1
    if total < config.window_tuples:
        return Progress(batch, total, progress.table, tuple(senders))
    table = rebalanced(config, progress.table, senders, batch)
    return Progress(batch, 0, table, tuple(begun(config, each) for each in senders))


def rebalanced(
    config: GroupingConfig, before: Table, senders: Sequence[SenderState], batch: int
) -> Table:
    """The table of the window that begins with ``batch``."""
    summary = merged_all((each.summary for each in senders), capacity(config.eps_share))
    heavy = heavy_keys(config, summary)
    table = before._replace(
        window=before.window + 1,
        times=config.times_of(batch),
        heavy=heavy,
        tuples=summary.tuples,
    )
    if config.policy == "d-choices":
        shares = [key.counted / summary.tuples for key in heavy.values()]
        table = table._replace(choices=choices(config.instances, shares))
    if config.policy == "dkg" and before.buckets is None:
        buckets = [sum(each) for each in zip(*(one.buckets for one in senders), strict=True)]
        found, places = placed(config, heavy, buckets)
        table = table._replace(placed=found, buckets=places)
    return table
