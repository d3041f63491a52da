"""A worker with one server and a queue without a limit, from the times at which its items come.

Rules of this file:

* Items are served in the order in which they come, so that each depends on the one before it alone:
  the run is a recurrence, exact, and without an event queue. ``tests/sim`` holds it to a station of
  the simulation.
* Who leaves at a moment has left before anybody comes then. What is asked about a moment is how
  things stood before anything happened then.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sim.distributions import FloatArray


class Line(NamedTuple):
    """When each item came, was begun and left; kernel microseconds, all three ascending."""

    arrived_us: FloatArray
    began_us: FloatArray
    ended_us: FloatArray

    @property
    def end_us(self) -> float:
        """When the last item had left."""
        return float(self.ended_us[-1]) if len(self.ended_us) else 0.0

    def inside(self, at_us: FloatArray) -> FloatArray:
        """How many were waiting or in service at these times."""
        came = np.searchsorted(self.arrived_us, at_us, side="left").astype(np.float64)
        return came - np.searchsorted(self.ended_us, at_us, side="left")

    def busy_us(self, at_us: FloatArray) -> FloatArray:
        """How long the worker had worked by then."""
        done = np.searchsorted(self.ended_us, at_us, side="left")
        worked_us = np.append(0.0, np.cumsum(self.ended_us - self.began_us))
        # The next one may be in service, or not have begun.
        since_us = at_us - np.append(self.began_us, np.inf)[done]
        busy_us: FloatArray = worked_us[done] + since_us.clip(min=0.0)
        return busy_us

    def utilisation(self, now_us: float) -> float:
        """Share of the time until now in which it worked, if everything has left."""
        worked_us = np.cumsum(self.ended_us - self.began_us)
        return float(worked_us[-1]) / now_us if now_us > 0 and len(worked_us) else 0.0

    def mean_inside(self, now_us: float) -> float:
        """How many were inside, on the mean over the time until now, if everything has left."""
        times_us = np.concatenate((self.arrived_us, self.ended_us))
        changes = np.repeat([1.0, -1.0], len(self.arrived_us))
        order = np.argsort(times_us, kind="stable")
        areas = np.cumsum(np.cumsum(changes[order])[:-1] * np.diff(times_us[order]))
        return float(areas[-1]) / now_us if now_us > 0 and len(areas) else 0.0

    @property
    def peak_inside(self) -> float:
        """The most that were ever inside."""
        before = np.arange(len(self.arrived_us))
        gone = np.searchsorted(self.ended_us, self.arrived_us, side="right")
        return float((before + 1 - np.minimum(gone, before)).max(initial=0))


def line_of(arrived_us: ArrayLike, work_us: ArrayLike, speed: float) -> Line:
    """Items that come at these times, in order, each with its work at speed 1."""
    came_us = np.asarray(arrived_us, dtype=np.float64)
    service_us = np.asarray(work_us, dtype=np.float64) / speed
    ended_us, free_us = [], 0.0
    for arrives_us, lasts_us in zip(came_us.tolist(), service_us.tolist(), strict=True):
        free_us = (arrives_us if arrives_us > free_us else free_us) + lasts_us
        ended_us.append(free_us)
    ended = np.array(ended_us, dtype=np.float64)
    # It is begun when it has come and the one before it has left.
    return Line(came_us, np.maximum(came_us, np.append(0.0, ended)[:-1]), ended)
