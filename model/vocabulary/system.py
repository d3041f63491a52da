"""How an implementation is plugged in."""

from typing import Protocol

from model.vocabulary.trace import Trace
from model.vocabulary.workload import Workload


class System(Protocol):
    """One callable: run a workload, return what was observed.

    Model, simulation and Spark pipeline each provide one a room, and so can a user
    (``--system package.module:factory``; the factory takes no arguments and returns a System).
    A System records raw observations, never interpretations.
    """

    def __call__(self, workload: Workload, /) -> Trace:
        """Run the workload to its end and return the trace."""
        ...
