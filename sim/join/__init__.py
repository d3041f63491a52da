"""Room ``join``, timed: what a chain of workers costs and holds (docs/join.md)."""

from sim.join.run import Run, make_system, simulate, simulate_stream, stream_of

__all__ = ["Run", "make_system", "simulate", "simulate_stream", "stream_of"]
