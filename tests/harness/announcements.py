"""Progress lines that a driver prints for the test that kills it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


def say(line: str) -> None:
    """Print a line for the process that will kill this one."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@contextmanager
def announced(batch: int) -> Iterator[None]:
    """Print that micro-batch ``batch`` begins, and after the block that it has ended."""
    say(f"begin {batch}")
    yield
    say(f"end {batch}")
