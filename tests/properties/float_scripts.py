"""Foreign systems for room ``script``: they add in float64 and say nothing of workers."""

from math import sqrt

from model.script import run
from model.vocabulary import System, Trace, Workload
from model.vocabulary.script import Hosted, Result


def make() -> System:
    """The model, its results moved by a little."""

    def system(workload: Workload, /) -> Trace:
        steps = [
            each._replace(value=each.value * (1 + 1e-12)) if isinstance(each, Result) else each
            for each in run(workload).steps()
        ]
        return Trace("floats", [each for each in steps if not isinstance(each, Hosted)])

    return system


def make_far() -> System:
    """Its results are moved by too much."""

    def system(workload: Workload, /) -> Trace:
        steps = run(workload).of(Result)
        return Trace("far", [each._replace(value=each.value + sqrt(2)) for each in steps])

    return system
