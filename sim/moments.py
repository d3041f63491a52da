"""Figures of a run at several moments of it: what experiments over time measure.

Rules of this file:

* A moment is a share of the run, above 0 and up to 1. A figure at a moment is the mean of a column
  over the tenth of the run that ends there, rows without a value left out.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from model.vocabulary.settings import require
from sim.kernel.distributions import FloatArray
from sim.settings import Setting, number
from sim.sweep.measurable import Figures, Measurable, Settings

AT = "at"
LAST = 1.0
TENTH = 0.1


class TimedRun(Protocol):
    """A run that has columns over time."""

    @property
    def series(self) -> Mapping[str, FloatArray]:
        """Columns; ``time_us`` is one of them."""


def moments(
    from_settings: Callable[[Settings, int], TimedRun], known: Mapping[str, Setting]
) -> Measurable:
    """The columns of a run's series, at the share of the run that setting ``at`` says."""
    several = partial(_figures_at, from_settings)
    return Measurable({**known, AT: LAST}, partial(_figures, several), {AT: several})


def _figures(
    several: Callable[[Settings, int, Sequence[str]], Sequence[Figures]],
    settings: Settings,
    seed: int,
) -> Figures:
    return several(settings, seed, [settings.get(AT, str(LAST))])[0]


def _figures_at(
    from_settings: Callable[[Settings, int], TimedRun],
    settings: Settings,
    seed: int,
    texts: Sequence[str],
) -> list[Figures]:
    """Of one run."""
    moments = [float(number(AT, text, float)) for text in texts]
    for moment in moments:
        require(0 < moment <= 1, AT, moment, "above 0 and at most 1")
    asked = {key: text for key, text in settings.items() if key != AT}
    series = from_settings(asked, seed).series
    return [columns_at(series, moment) for moment in moments]


def columns_at(series: Mapping[str, FloatArray], moment: float) -> Figures:
    """Mean of every column over the tenth of the run that ends at a moment."""
    share = series["time_us"] / series["time_us"][-1]
    # A hair more, for shares such as 0.3 that are no float.
    rows = (share > moment - TENTH + 1e-9) & (share <= moment + 1e-9)
    return {name: _mean(column[rows]) for name, column in series.items()}


def _mean(values: FloatArray) -> float | None:
    seen = values[~np.isnan(values)]
    return float(seen.mean()) if len(seen) else None
