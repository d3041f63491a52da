"""The promise about load, judged on the moments of a run: no false shedding.

Source: docs/join.md, section 8.

Rules of this file:

* A run is a list of moments, whoever measured them.
* What the rules of control decide is compared with Spark's and with formulas, not judged here.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from model.checking.claims import Claim, ClaimSet
from model.vocabulary.join_load import Limits

NO_FALSE_SHEDDING = "no worker is above tau1 while the mean is not, and nothing is shed then"
LOADED = "moments above the aim with a worker above the mean"
ROUNDING = 1e-9


class Moment(NamedTuple):
    """A chain at one moment of a run."""

    at_us: int
    workers: int
    mean: float
    """Mean utilisation of the workers: tuples held, divided by ``capacity``."""
    fullest: float
    """Utilisation of the fullest worker."""
    smoothed: float
    """Utilisation that shedding follows."""
    share: float
    """Share of the following arrivals that is to be shed."""


class Moments(NamedTuple):
    """The moments of one run, and the settings that it followed."""

    moments: Sequence[Moment]
    limits: Limits
    capacity: int
    """Number of tuples at a utilisation of 1."""


def _loaded_moments(run: Moments) -> int:
    aim = run.limits.aim
    return sum(aim < each.mean < each.fullest and _is_promised(each, run) for each in run.moments)


def _is_promised(moment: Moment, run: Moments) -> bool:
    """Return whether the mean is not above tau1, and a block need not be smaller than a tuple."""
    spare = 2 * run.capacity * (run.limits.tau1 - moment.mean)
    return spare >= 0 and spare >= moment.workers - 1


def _false_shedding(run: Moments) -> Iterator[str]:
    tau1 = run.limits.tau1
    for moment in run.moments:
        if _is_promised(moment, run) and moment.fullest > tau1 + ROUNDING:
            yield (
                f"At {moment.at_us} us the mean utilisation is {moment.mean:.3f} and that of the"
                f" fullest worker {moment.fullest:.3f}, above {tau1:g}."
            )


RUN_CLAIMS: ClaimSet[Moments] = ClaimSet(
    (Claim(NO_FALSE_SHEDDING, LOADED, _false_shedding),), {LOADED: _loaded_moments}
)
