"""Scales of streams: the sizes of times, identities, values, keys and windows.

Rules of this file:

1. The scale is drawn before the stream. An ordinary stream has small numbers throughout, so it says
   nothing about numbers that need more bits, or about windows of another size.
2. A scale changes the stream and never the query: its windows stay as long as they are.
"""

from collections.abc import Callable, Mapping

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
