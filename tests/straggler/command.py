"""The command line as tests run it: what it prints, and how it exits."""

from collections.abc import Callable
from typing import NamedTuple


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str


Straggler = Callable[..., Done]
INTERRUPTED = Done(130, "", "straggler: interrupted.\n")


def assert_refused(done: Done, *words: str) -> None:
    """Assert exit code 2 and one sentence with these words in it."""
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1, done.err
    assert done.err.startswith("straggler: ")
    for word in words:
        assert word in done.err
