"""Record what a simulation did over time: levels with their history, columns, digests of runs.

Rules of this file:

* Recording changes nothing and draws nothing: a run with recording equals a run without.
* A level is read just before a moment: an event at that very moment comes after the reading.
"""

from array import array
from collections.abc import Mapping
from math import nan
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.kernel.distributions import FloatArray

Figure: TypeAlias = float | int | str
Summary: TypeAlias = dict[str, Figure]
Series: TypeAlias = Mapping[str, FloatArray]


class Level:
    """A quantity with constant value between changes, such as a queue length or a watermark."""

    __slots__ = ("_times_us", "_values", "value")

    def __init__(self, value: float = 0.0) -> None:
        self.value = value
        self._times_us = array("d", [0.0])
        self._values = array("d", [value])

    def set(self, value: float, now_us: float) -> None:
        """Change the value at ``now_us``, which is not before the last change."""
        self.value = value
        self._times_us.append(now_us)
        self._values.append(value)

    @property
    def changed_us(self) -> float:
        """Time of the last change; 0 if there was none."""
        return self._times_us[-1]

    @property
    def peak(self) -> float:
        """Largest value that lasted for some time, the present one included."""
        times_us, values = self._history()
        lasted = np.append(np.diff(times_us) > 0, True)
        return float(values[lasted].max())

    def at(self, time_us: ArrayLike) -> FloatArray:
        """Return the value just before each of these times (us)."""
        times_us, values = self._history()
        found: FloatArray = values[self._before(times_us, time_us)]
        return found

    def integral_us(self, time_us: ArrayLike) -> FloatArray:
        """Return the area under the curve from 0 to each of these times (value times us)."""
        times_us, values = self._history()
        areas = np.append(0.0, np.cumsum(values[:-1] * np.diff(times_us)))
        row = self._before(times_us, time_us)
        found: FloatArray = areas[row] + values[row] * (np.asarray(time_us) - times_us[row])
        return found

    def mean(self, now_us: float) -> float:
        """Return the mean from 0 to ``now_us``; 0 if no time has passed."""
        return float(self.integral_us(now_us)) / now_us if now_us > 0 else 0.0

    def means(self, grid_us: FloatArray) -> FloatArray:
        """Return the mean over each interval that ends at a time of the grid; it starts at 0."""
        area_us = np.diff(self.integral_us(grid_us), prepend=0.0)
        length_us = np.diff(grid_us, prepend=0.0)
        means: FloatArray = np.full(len(grid_us), np.nan)
        return np.divide(area_us, length_us, out=means, where=length_us > 0)

    def _history(self) -> tuple[FloatArray, FloatArray]:
        return np.array(self._times_us), np.array(self._values)

    @staticmethod
    def _before(times_us: FloatArray, time_us: ArrayLike) -> NDArray[np.int64]:
        # At 0 there is no earlier value: the first value counts.
        return np.maximum(np.searchsorted(times_us, time_us, side="left") - 1, 0)


def ratio(dividend: FloatArray, divisor: FloatArray) -> FloatArray:
    """Return quotients element by element; ``nan`` where the divisor is 0."""
    quotient: FloatArray = np.full(len(divisor), nan)
    return np.divide(dividend, divisor, out=quotient, where=divisor != 0)
