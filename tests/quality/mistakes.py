"""Planting of mistakes: one expression of a function, written otherwise."""

import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import pytest

from model.vocabulary.settings import PlainData


class Mistake(NamedTuple):
    """A planted mistake: a piece of a function's source and its replacement."""

    function: Callable[..., Any]
    right: str
    wrong: str

    def plant(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the function make the mistake until the test is over."""
        monkeypatch.setattr(self.function, "__code__", self._code())

    def keep(self) -> None:
        """Let the function make the mistake until the process is over."""
        self.function.__code__ = self._code()

    def _code(self) -> Any:
        """Return the function with the mistake, compiled."""
        assert isinstance(self.function, FunctionType)
        source = textwrap.dedent(inspect.getsource(self.function))
        assert source.count(self.right) == 1, f"{self.right!r} does not occur exactly once"
        names: dict[str, PlainData] = {}
        exec(source.replace(self.right, self.wrong), self.function.__globals__, names)
        made: Any = names[self.function.__name__]
        return getattr(made, "fget", made).__code__
