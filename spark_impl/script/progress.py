"""The position of a query of scripts, and the sensor that holds it back."""

from collections.abc import Mapping
from typing import NamedTuple

from model.vocabulary.script.config import END_US
from spark_impl.runtime.storage import Address
from spark_impl.script.plan import compile_plan
from spark_impl.script.store import config_of, load_store


class Progress(NamedTuple):
    """The position of a query of scripts, and what holds it back."""

    batch: int
    """The last complete micro-batch; -1 before the first one."""
    known_until_us: int
    """Stamp before which all results of all groups are there."""
    rejected: Mapping[str, int]
    """Number of refused arrivals so far, by reason."""
    held_by: str | None
    """The sensor with the lowest watermark; ``None`` after a flush, and before any arrival."""
    watermark_us: int
    """The watermark of this sensor; without one, ``END_US`` after a flush and otherwise 0."""


def progress(store: Address) -> Progress:
    """Return the position of a query, and the sensor that holds back its results.

    Of several combinations of values of the grouping columns, the one that is furthest behind
    counts. Raise :class:`InputProblem` if ``store`` is not the store of a query.
    """
    place = load_store(store)
    plan, standing = compile_plan(config_of(place.view)), place.standing()
    stands = [
        (row["wm_us"], row["held_by"])
        for own in standing.values()
        for row in own.values()
        if row["held_by"] is not None
    ]
    for own in standing.values():  # a worker that was sent nothing has not said anything
        silent = [name for name, at in plan.hosts.items() if at[0] not in own]
        stands += [(0, name) for name in silent]
    reasons = place.read_kind("rejected").column("reason").value_counts().to_pylist()
    known_us = [
        own[worker]["known_us"] if worker in own else 0
        for own in standing.values()
        for worker in set(plan.placement.worker.values())
    ]
    watermark_us, held_by = min(stands, default=(END_US if standing else 0, None))
    return Progress(
        place.view.last,
        min(known_us, default=0),
        {each["values"]: each["counts"] for each in reasons},
        held_by,
        watermark_us,
    )
