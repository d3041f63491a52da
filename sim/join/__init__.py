"""Room ``join``, timed: what a chain of workers costs and holds (docs/join.md)."""

from sim.join.run import Run, make_system, simulate, simulate_stream, stream_of
from sim.join.settings import DEFAULTS, STANDARD, from_settings

__all__ = [
    "DEFAULTS",
    "STANDARD",
    "Run",
    "from_settings",
    "make_system",
    "simulate",
    "simulate_stream",
    "stream_of",
]
