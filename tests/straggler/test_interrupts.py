"""Ctrl-C is one line and exit code 130, even if a library handles it; a closed pipe is no error."""

import gc
import io
import json
import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from model.slack import run as run_slack
from model.vocabulary import Event, SlackConfig, Trace, Workload
from spark_impl.runtime import session
from straggler.cli import render, sim
from straggler.rooms.slack.room import ROOM
from tests.straggler.command import INTERRUPTED, PATIENCE_S, Done, Straggler, start

pytestmark = pytest.mark.usefixtures("heard")


def press_ctrl_c(*_: object) -> str:
    signal.raise_signal(signal.SIGINT)
    return ""


def system_exit() -> None:
    try:
        press_ctrl_c()
    except KeyboardInterrupt:
        raise SystemExit(1) from None


def no_error() -> None:
    with pytest.raises(KeyboardInterrupt):
        press_ctrl_c()


def pandas_reads() -> None:
    source = io.StringIO()
    source.read = press_ctrl_c  # type: ignore[method-assign]  # a fault is planted
    with pytest.raises(pd.errors.ParserError, match="Calling read") as failed:
        pd.read_csv(source)
    raise failed.value


def java_ends() -> None:
    with session._collect_interrupts([]):
        press_ctrl_c()
        raise LookupError("no Java")


def in_a_simulation() -> None:
    events = tuple([Event(n, n, "ab"[n % 2], n, 1.0, n) for n in range(200_000)])
    workload = Workload("slack", events, SlackConfig(9, 3, control="fixed").to_json())
    before = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    gc.disable()  # an interrupt inside a callback of the collector is swallowed
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        ROOM.timed.replay(workload)
    finally:
        gc.enable()
        signal.signal(signal.SIGALRM, before)


BECOMES = (press_ctrl_c, system_exit, no_error, pandas_reads, java_ends, in_a_simulation)


def running(monkeypatch: pytest.MonkeyPatch, what: Callable[[], object], code: int = 0) -> None:
    """Let ``straggler sim`` do something else."""

    def run(_: Namespace) -> int:
        what()
        return code

    monkeypatch.setattr(sim, "run", run)


@pytest.mark.parametrize("becomes", BECOMES)
def test_an_interrupt_is_reported_even_if_the_command_goes_on(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch, becomes: Callable[[], object]
) -> None:
    running(monkeypatch, becomes)
    assert straggler("sim", "slack") == INTERRUPTED


def test_interrupts_that_the_parent_ignores_are_heard(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Begin as after nohup, or in the background of a shell."""
    running(monkeypatch, press_ctrl_c)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert straggler("sim", "slack") == INTERRUPTED
    finally:
        assert signal.signal(signal.SIGINT, signal.default_int_handler) is signal.SIG_IGN


@pytest.mark.long
@pytest.mark.timeout(PATIENCE_S)
def test_ctrl_c_ends_a_query_on_spark_and_leaves_nothing(tmp_path: Path) -> None:
    times = [time_s if time_s % 4 else time_s - 9 for time_s in range(20, 120)]
    rows = "".join(f"{time_s},{n % 7},{'ab'[n % 2]}\n" for n, time_s in enumerate(times))
    (tmp_path / "stream.csv").write_text(f"seconds,value,key\n{rows}", encoding="utf-8")
    ask = ("--input", "stream.csv", "--event-time", "seconds", "--time-unit", "s")
    with start(tmp_path, "diff", "slack", *ask) as straggler:
        ends_s = time.monotonic() + PATIENCE_S
        # A pipeline's working folder: the first query is under way.
        while not list((tmp_path / "scratch").glob("straggler-slack-*/store")):
            assert straggler.poll() is None, straggler.communicate()
            assert time.monotonic() < ends_s
            time.sleep(0.05)
        os.killpg(straggler.pid, signal.SIGINT)
        out, err = straggler.communicate(timeout=PATIENCE_S)
    assert Done(straggler.returncode, out, err) == INTERRUPTED
    assert not list((tmp_path / "scratch").iterdir())
    assert not (tmp_path / "counterexamples").exists()


def interrupted_in_the_third() -> Callable[[Workload], Trace]:
    """Return a System that is interrupted in its third comparison, and then gives up."""
    workloads: list[Workload] = []

    def system(workload: Workload) -> Trace:
        workloads.append(workload)
        if len(workloads) == 3:
            no_error()
            return Trace("gave up", ())
        return run_slack(workload)

    return system


def test_an_interrupt_leaves_what_has_been_judged(straggler: Straggler, files: Path) -> None:
    ask = ("diff", "slack", "--input", "stream.csv", "--time-unit", "s", "--control", "fixed")
    system = ("--system", f"{__name__}:interrupted_in_the_third")
    done = straggler(*ask, *system, "--json", "v.json")
    assert (done.code, done.err.splitlines()[-1]) == (130, "straggler: interrupted.")
    note = "Not complete: 2 of 4 comparisons judged, then interrupted."
    assert done.out.splitlines()[1] == note
    record = json.loads((files / "v.json").read_text(encoding="utf-8"))
    assert record["incomplete"] == note
    assert [row["verdict"] for row in record["comparisons"]] == ["holds", "holds"]


def test_a_pipe_that_is_closed_ends_a_command_quietly(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch
) -> None:
    running(monkeypatch, lambda: render.print_lines(render.console(), ["more than one reads"]), 1)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert straggler("sim", "slack") == Done(0, "", "")


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_stream_that_is_closed_from_the_start_changes_no_exit_code(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    def prints() -> None:
        render.print_lines(render.console(), ["whoever reads"])
        with render.progress() as progress:
            render.print_lines(progress.console, ["whoever watches"])

    running(monkeypatch, prints, 3)
    monkeypatch.setattr(sys, closed, None)
    done = straggler("sim", "slack")
    os.close(getattr(sys, closed).fileno())
    expected = {"stdout": "whoever reads\n", "stderr": "whoever watches\n", closed: ""}
    assert done == Done(3, expected["stdout"], expected["stderr"])
