"""Scales of streams: the sizes of times, identities, values, keys and windows.

Rules of this file:

1. The scale is drawn before the stream. An ordinary stream has small numbers throughout, so it says
   nothing about numbers that need more bits, or about windows of another size.
2. A scale changes the stream and never the query: its windows stay as long as they are.
"""

from collections.abc import Callable, Collection, Mapping

from model.vocabulary import Workload
from model.vocabulary.script.config import MILLISECOND_US
from straggler.strategies.clusters import Shape

YEAR_US = 365 * 86_400_000_000
USUAL = "usual"


def ranks(keys: int) -> tuple[str, ...]:
    """Return that many keys."""
    return tuple([f"k{number}" for number in range(keys)])


SCALES: Mapping[str, Callable[[Shape], Shape]] = {
    "years": lambda shape: shape._replace(scale_us=YEAR_US, events=(24,)),
    "large values": lambda shape: shape._replace(values=((2**40, 2**40 + 2**20),)),
    "many keys": lambda shape: shape._replace(
        events=(1_300,), numbers=(1,), keys=(ranks(4_000),), zipf=(0.0,), sheds=False
    ),
    "microseconds": lambda shape: shape._replace(scale_us=8),
    "wide identities": lambda shape: shape._replace(events=(6,), numbers=(8,)),
    "full windows": lambda shape: shape._replace(
        scale_us=2, events=(1_200,), numbers=(1,), keys=(("a",),), sheds=False
    ),
    USUAL: lambda shape: shape,
}
"""Changes of a shape, by what they bring about: event times that span years; values that need more
than 24 bits; a thousand keys and more; event times that span less than a millisecond; identities
beyond 2^32; a window with a thousand tuples; nothing. Windows of one tuple occur with years."""

SIZED = (
    *("spans of years", "spans below a millisecond"),
    *("identities beyond 2^32", "values beyond float32"),
    *("streams of a thousand keys", "windows of one tuple", "windows of a thousand tuples"),
)
"""Cases that :func:`count_scales` counts, those of wide numbers first."""
WIDE = SIZED[:4]
MANY = 1_000
FLOAT32_EXACT = 2**24
"""Largest whole number up to which a 32-bit float holds all whole numbers."""


def count_scales(workload: Workload, sizes: Collection[int] = ()) -> dict[str, int]:
    """Count the large and small numbers in a stream, and its windows of some sizes."""
    times_us = [event.event_time_us for event in workload.arrivals]
    span_us = max(times_us, default=0) - min(times_us, default=0)
    found = (
        span_us >= YEAR_US,
        1 < span_us < MILLISECOND_US,
        any(event.source_id >= 1 << 32 for event in workload.arrivals),
        workload.config.get("aggregate") != "count"
        and any(event.value > FLOAT32_EXACT for event in workload.arrivals),
        len({event.key for event in workload.arrivals}) >= MANY,
        sum(each == 1 for each in sizes),
        sum(each >= MANY for each in sizes),
    )
    return {name: int(count) for name, count in zip(SIZED, found, strict=True)}
