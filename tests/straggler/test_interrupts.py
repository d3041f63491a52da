"""Ctrl-C is one line and exit code 130, even if a library handles it; a closed pipe is no error."""

import io
import os
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator

import pandas as pd
import pytest

from straggler.cli import render, sim
from straggler.judging.systems import delay_interrupts
from tests.straggler.command import Done, Straggler

INTERRUPTED = Done(130, "", "straggler: interrupted.\n")


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Let interrupts be heard, even if the tests run in the background, which ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def press_ctrl_c(*_: object) -> str:
    signal.raise_signal(signal.SIGINT)
    return ""


def another_error() -> None:
    try:
        press_ctrl_c()
    except KeyboardInterrupt:
        raise LookupError("no idea") from None


def no_error() -> None:
    with pytest.raises(KeyboardInterrupt):
        press_ctrl_c()


def system_exit() -> None:
    try:
        press_ctrl_c()
    except KeyboardInterrupt:
        raise SystemExit(1) from None


def pandas_reads() -> None:
    source = io.StringIO()
    source.read = press_ctrl_c  # type: ignore[method-assign]  # a fault is planted
    with pytest.raises(pd.errors.ParserError, match="Calling read") as failed:
        pd.read_csv(source)
    raise failed.value


def java_ends() -> None:
    with delay_interrupts():
        press_ctrl_c()
        raise LookupError("no Java")


@pytest.mark.parametrize(
    "becomes",
    [press_ctrl_c, another_error, no_error, system_exit, pandas_reads, java_ends],
)
def test_an_interrupt_is_reported_even_if_the_command_goes_on(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch, becomes: Callable[[], object]
) -> None:
    def run(_: Namespace) -> int:
        becomes()
        return 0

    monkeypatch.setattr(sim, "run", run)
    assert straggler("sim", "slack") == INTERRUPTED


def test_an_interrupt_is_heard_even_if_the_parent_ignores_it(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_: Namespace) -> int:
        press_ctrl_c()
        return 0

    monkeypatch.setattr(sim, "run", run)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    done = straggler("sim", "slack")
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is signal.SIG_IGN
    assert done == INTERRUPTED


def test_another_handler_of_interrupts_stays(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def run(_: Namespace) -> int:
        press_ctrl_c()
        return 0

    monkeypatch.setattr(sim, "run", run)
    signal.signal(signal.SIGINT, lambda number, _frame: seen.append(number))
    done = straggler("sim", "slack")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert (done, seen) == (Done(0, "", ""), [signal.SIGINT])


IGNORED = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN);"
"""The beginning of a program whose children are started with interrupts ignored, as by nohup."""


def test_a_command_started_with_interrupts_ignored_is_interrupted() -> None:
    start = f"{IGNORED} os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    child = (
        "from straggler.cli import main, sim\n"
        "import signal\n"
        "assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN\n"
        "sim.run = lambda _: signal.raise_signal(signal.SIGINT)\n"
        "raise SystemExit(main.main(['sim', 'slack']))"
    )
    command = [sys.executable, "-c", start, "-c", child]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert Done(done.returncode, done.stdout, done.stderr) == INTERRUPTED


def test_a_pipe_that_is_closed_ends_a_command_quietly(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_: Namespace) -> int:
        render.print_lines(render.console(), ["more than one reads"])
        return 1

    monkeypatch.setattr(sim, "run", run)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert straggler("sim", "slack") == Done(0, "", "")


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_stream_that_is_closed_from_the_start_changes_no_exit_code(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    def run(_: Namespace) -> int:
        render.print_lines(render.console(), ["whoever reads"])
        with render.progress() as progress:
            render.print_lines(progress.console, ["whoever watches"])
        return 3

    monkeypatch.setattr(sim, "run", run)
    monkeypatch.setattr(sys, closed, None)
    done = straggler("sim", "slack")
    os.close(getattr(sys, closed).fileno())
    expected = {"stdout": "whoever reads\n", "stderr": "whoever watches\n", closed: ""}
    assert done == Done(3, expected["stdout"], expected["stderr"])
