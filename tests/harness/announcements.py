"""What drivers that are to be killed say of where they are, a line of standard output each."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


def say(line: str) -> None:
    """Tell whoever is to kill this process where it is."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@contextmanager
def announced(batch: int) -> Iterator[None]:
    """Say that micro-batch ``batch`` begins, and after this block that it has ended."""
    say(f"begin {batch}")
    yield
    say(f"end {batch}")
