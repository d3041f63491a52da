"""Progress lines that a driver prints for the test that kills it, and moments at which it waits."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GATE_S = 30.0
"""Longest wait at a gate: whoever closed it may have died."""
_gates: list[Path] = []


def say(line: str) -> None:
    """Print a line for the process that will kill this one."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def place_gate(file: Path) -> None:
    """Let this process wait at the moment that ``file`` names, while the file exists."""
    _gates[:] = [file]


def reach(moment: str) -> None:
    """Wait here while the gate names this moment, and print ``held`` first."""
    for gate in _gates:
        if _names(gate, moment):
            say(f"held {moment}")
            ends_s = time.monotonic() + GATE_S
            while _names(gate, moment) and time.monotonic() < ends_s:
                time.sleep(0.01)


def _names(gate: Path, moment: str) -> bool:
    try:
        return gate.read_text(encoding="utf-8") == moment
    except FileNotFoundError:
        return False


@contextmanager
def announced(batch: int) -> Iterator[None]:
    """Print that micro-batch ``batch`` begins, and after the block that it has ended."""
    say(f"begin {batch}")
    reach("begin")
    yield
    say(f"end {batch}")
    reach("end")
