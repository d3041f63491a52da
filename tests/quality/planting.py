"""Planting of bugs: a function does something else while a producer runs, and is right again after.

A bug changes the function itself, so that everybody who has imported it makes the mistake. Workers
of Spark make it as well if they begin with :meth:`Planted.keep`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FunctionType
from typing import Any, NamedTuple

from model.vocabulary import Trace, Workload

STOPS = (ArithmeticError, AssertionError, LookupError, RuntimeError, ValueError)
"""Errors of a producer that its bug stops: there is no trace to judge."""
CALLED = """
def planted(*given, **named):
    from tests.quality.planting import PLANTED
    right, instead = PLANTED[{number}]
    return instead(right, *given, **named)
"""
PLANTED: list[tuple[FunctionType, Callable[..., Any]]] = []
"""Right functions, and what is done instead."""

Run = Callable[[Workload], Trace]


class Planted(NamedTuple):
    """A bug: what a function does instead, given the right function and the arguments."""

    function: Any
    """Function, or property whose getter is meant."""
    instead: Callable[..., Any]

    def keep(self) -> Callable[..., Any]:
        """Let the function make the mistake from now on; return a copy of the right function."""
        function = self._function
        assert function.__closure__ is None, "a closure has no code of its own"
        right = FunctionType(function.__code__, function.__globals__, function.__name__)
        right.__defaults__, right.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        names: dict[str, Any] = {}
        exec(CALLED.format(number=len(PLANTED)), names)
        PLANTED.append((right, self.instead))
        function.__code__ = names["planted"].__code__
        function.__defaults__ = function.__kwdefaults__ = None
        return right

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Let the function make the mistake for a while."""
        function, right = self._function, self.keep()
        try:
            yield
        finally:
            for name in ("__code__", "__defaults__", "__kwdefaults__"):
                setattr(function, name, getattr(right, name))

    @property
    def _function(self) -> Any:
        return getattr(self.function, "fget", self.function)

    def trace_of(self, run: Run, workload: Workload) -> Trace | None:
        """Return the trace of a producer that makes the mistake; None if it is stopped by it."""
        with self.in_force(), suppress(*STOPS):
            return run(workload)
        return None
