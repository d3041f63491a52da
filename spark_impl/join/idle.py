"""Clocks of both streams, by which a silent stream follows the other one (docs/join.md, section 2).

Rules of this file:

* Every function is pure. Clocks change between epochs only, on the driver.
* A stream's own progress is known to its source worker; a clock knows it as of the last epoch.
"""

from typing import NamedTuple

from model.vocabulary import JoinConfig
from model.vocabulary.join import NO_WATERMARK_US, R, S
from spark_impl.join.matching import Counts

NO_FLOORS = Counts(NO_WATERMARK_US, NO_WATERMARK_US)
"""The floors of streams that were never idle."""


class StreamClock(NamedTuple):
    """The progress of one stream."""

    t_max_us: int = NO_WATERMARK_US
    """Largest admitted event time."""
    mark_us: int | None = None
    """Largest admitted event time of the other stream when this one last sent anything."""
    floor_us: int = NO_WATERMARK_US
    """The watermark does not lie below this."""

    def watermark_us(self, lateness_us: int | None) -> int:
        """Return the watermark of the stream."""
        if lateness_us is None or self.t_max_us == NO_WATERMARK_US:
            return self.floor_us
        return max(self.t_max_us - lateness_us, self.floor_us)


class Clocks(NamedTuple):
    """The progress of both streams."""

    r: StreamClock = StreamClock()
    s: StreamClock = StreamClock()

    @property
    def floors(self) -> Counts:
        """The floor of each stream."""
        return Counts(self.r.floor_us, self.s.floor_us)

    def held_by(self, lateness_us: int | None) -> str:
        """Return the stream with the lower watermark, R of equals."""
        r_us, s_us = (each.watermark_us(lateness_us) for each in self)
        return R if r_us <= s_us else S


def begin_epoch(config: JoinConfig, clocks: Clocks) -> Clocks:
    """Return the clocks at the beginning of an epoch: floors of idle streams rise."""
    r, s = clocks
    return Clocks(_with_floor(config, r, s.t_max_us), _with_floor(config, s, r.t_max_us))


def _with_floor(config: JoinConfig, clock: StreamClock, other_us: int) -> StreamClock:
    idle_us = config.idle_after_us
    if idle_us is None or config.lateness_us is None or clock.mark_us is None:
        return clock
    if other_us - clock.mark_us <= idle_us:
        return clock
    followed_us = max(other_us - config.lateness_us - idle_us, NO_WATERMARK_US)
    return clock._replace(floor_us=max(clock.floor_us, followed_us))


def end_epoch(config: JoinConfig, clocks: Clocks, t_max_us: Counts, accepted: Counts) -> Clocks:
    """Return the clocks after an epoch that began with ``clocks``.

    ``accepted`` is the number of arrivals that were neither shed nor without a finite value.
    """
    marked = config.idle_after_us is not None

    def after(clock: StreamClock, own_us: int, other_us: int, came: int) -> StreamClock:
        mark_us = clock.mark_us if marked else None
        if marked and (came or mark_us is None):
            mark_us = None if other_us == NO_WATERMARK_US else other_us
        return StreamClock(own_us, mark_us, clock.floor_us)

    r_us, s_us = t_max_us
    return Clocks(after(clocks.r, r_us, s_us, accepted.r), after(clocks.s, s_us, r_us, accepted.s))
