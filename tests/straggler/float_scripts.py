"""Foreign systems for room ``script``: they add in float64, or omit some steps."""

from math import sqrt

from model.script import run
from model.vocabulary import System, Trace, Workload
from model.vocabulary.script.config import REASON_NOT_FINITE, Hosted, Result


def make() -> System:
    """Return the model with results that are moved a little."""

    def system(workload: Workload, /) -> Trace:
        steps = [
            each._replace(value=each.value * (1 + 1e-12)) if isinstance(each, Result) else each
            for each in run(workload).steps()
        ]
        return Trace("floats", [each for each in steps if not isinstance(each, Hosted)])

    return system


def make_far() -> System:
    """Return a System whose results are too far from the right ones."""

    def system(workload: Workload, /) -> Trace:
        steps = run(workload).of(Result)
        return Trace("far", [each._replace(value=each.value + sqrt(2)) for each in steps])

    return system


def make_silent() -> System:
    """Return a System that omits tuples without a value silently."""

    def system(workload: Workload, /) -> Trace:
        steps = run(workload).steps()
        return Trace("silent", [x for x in steps if getattr(x, "reason", "") != REASON_NOT_FINITE])

    return system
