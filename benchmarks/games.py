"""HPM's Figures 3 to 5 on Spark, beside the simulation, as ``games.svg``.

The stream ``game-2`` of the published size comes to one simulated task, with the published query:
SUM over 0.5 s every 0.1 s, Gamma = 5 s. The run is recorded once for each control, and Spark gets
the recording in the same micro-batches. MP-K-slack is the control ``max``. HPM is ``pd`` as
printed, and ``pd-clamped`` with alpha kept between 0 and 1.

Times are those of the stream, so the figures do not depend on the speed of a machine: the latency
of a window is how far the stream had gone beyond its end when it was answered. Errors are relative
to the final answer. AQ-K-slack corrects nothing and is not a control of the pipeline.
"""

import os
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from model.vocabulary import Trace, Workload
from model.vocabulary.slack import Progress
from model.vocabulary.windows import Final, Result, Revision
from sim.slack import from_settings
from spark_impl.runtime.session import session
from spark_impl.slack import run_workloads
from straggler.rooms import find_room

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GAME = {
    "scenario": "game-2",
    "messages": os.environ.get("STRAGGLER_GAME_TUPLES", "559211"),
    "size_us": "500000",
    "slide_us": "100000",
    "gamma_us": "5000000",
    "keyed": "no",
    "tasks": "1",
    "speeds": "1",
    "service_us": "50",
    "trigger_interval_us": "20000000",
}
CONTROLS = {"max": "MP-K-slack", "pd-clamped": "HPM, alpha limited", "pd": "HPM as printed"}
CORRECTING = tuple(CONTROLS.values())[1:]
SECOND_US = 1_000_000
SPARK: Mapping[str, Any] = {
    "marker": "o",
    "markersize": 4,
    "fillstyle": "none",
    "linestyle": "none",
}
"""Shape of the curves on Spark."""
StepT = TypeVar("StepT", Result, Revision)
MEASURED = Path(__file__).parent / "measured"


class Point(NamedTuple):
    """One run at the end of a micro-batch, over all windows that the stream has answered."""

    at_s: float
    """Time since the start of the stream."""
    buffer_s: float
    """Figure 3: K."""
    latency_s: float
    """Figure 4: mean latency of first answers."""
    first_percent: float
    """Figure 5: accuracy of first answers, on average."""
    in_force_percent: float
    """Figure 5: accuracy of the latest answers, on average."""


Curves: TypeAlias = tuple[list[Point], list[Point]]
"""Simulated and on Spark."""


def measure() -> dict[str, float | str]:
    """Return figures; write the picture of the curves."""
    drawn: dict[str, Curves] = {}
    figures: dict[str, float | str] = {}
    room = find_room("slack")
    with session() as spark, tempfile.TemporaryDirectory(prefix="straggler-bench-") as folder:
        for control, name in CONTROLS.items():
            timed = from_settings({**GAME, "control": control}, 0)
            case = timed.workload
            trace = run_workloads(spark, {"game": case}, Path(folder, control))["game"]
            differing = room.compare(case, timed.trace, trace, room.step_types).mismatches
            simulated, found = points(case, timed.trace), points(case, trace)
            drawn[name] = simulated, found
            figures |= {"tuples": len(case.arrivals), "micro-batches": len(found)}
            figures[f"{name}: steps that differ from the simulation"] = differing
            figures |= {f"{name}: {key}": each for key, each in summary(found).items()}
    longest, limited = (drawn[CONTROLS[each]][1][-1] for each in ("max", "pd-clamped"))
    figures["mean latency, HPM with alpha limited / MP-K-slack"] = (
        limited.latency_s / longest.latency_s
    )
    draw(drawn)
    return figures


def points(workload: Workload, trace: Trace) -> list[Point]:
    """Return the curves of a trace, up to the flush."""
    start_us, size_us = workload.arrivals[0].arrival_us, int(GAME["size_us"])
    final = {step.start_us: step.value for step in trace.of(Final)}
    first, revised = by_batch(trace.of(Result)), by_batch(trace.of(Revision))
    slack_us = {step.batch: step.slack_us for step in trace.of(Progress)}
    latencies_us: list[int] = []
    first_error: list[float] = []
    error_in_force: dict[int, float] = {}

    def error_of(step: Result | Revision) -> float:
        return abs(step.value / final[step.start_us] - 1)

    found = []
    for batch, end in enumerate((*workload.cuts, len(workload.arrivals))):
        # The watermark and K at the closing of a window add up to the time of the stream.
        latencies_us += [s.wm_us + s.slack_us - s.start_us - size_us for s in first[batch]]
        first_error += map(error_of, first[batch])
        error_in_force |= {step.start_us: error_of(step) for step in first[batch]}
        error_in_force |= {step.start_us: error_of(step) for step in revised[batch]}
        found.append(
            Point(
                (workload.arrivals[end - 1].arrival_us - start_us) / SECOND_US,
                slack_us[batch] / SECOND_US,
                fmean(latencies_us or [nan]) / SECOND_US,
                100 - 100 * fmean(first_error or [nan]),
                100 - 100 * fmean(error_in_force.values() or [nan]),
            )
        )
    return found


def by_batch(steps: Sequence[StepT]) -> Mapping[int, list[StepT]]:
    """Return the steps of each micro-batch."""
    found: defaultdict[int, list[StepT]] = defaultdict(list)
    for step in steps:
        found[step.batch].append(step)
    return found


def summary(found: list[Point]) -> dict[str, float]:
    """Return the figures of a run that the source has, too."""
    last = found[-1]
    return {
        "buffer at the end, s": last.buffer_s,
        "mean buffer, s": fmean(each.buffer_s for each in found),
        "mean latency, s": last.latency_s,
        "accuracy of first answers, %": last.first_percent,
        "accuracy of answers in force, %": last.in_force_percent,
    }


def draw(drawn: Mapping[str, Curves]) -> None:
    """Draw the curves of the simulation as lines, and those of Spark as circles on them."""
    from sim.report.drawing import save

    MEASURED.mkdir(exist_ok=True)
    save(picture, (drawn,), MEASURED / "games.svg")


def picture(drawn: Mapping[str, Curves]) -> "Figure":
    """Return the figure that :func:`draw` writes."""
    from sim.report.drawing import BLACK, BLUE, GREEN, ORANGE, panels

    title = "game-2, simulated: lines are a timed run, circles the same recording on Spark"
    label = "time since the start of the stream (s)"
    figure, (buffer, latency, accuracy) = panels(3, (8.0, 7.5), title, label)
    buffer.set(title="Figure 3: size of the buffer", ylabel="seconds")
    latency.set(title="Figure 4: mean latency of first answers so far", ylabel="seconds")
    accuracy.set(title="Figure 5: mean accuracy of all answers so far", ylabel="%")
    styles = dict(zip(drawn, ((ORANGE, "--"), (BLUE, "-"), (BLACK, ":")), strict=True))
    lines = [
        *((buffer, name, "buffer_s", name, *styles[name]) for name in drawn),
        *((latency, name, "latency_s", name, *styles[name]) for name in drawn),
        *(
            (accuracy, name, "first_percent", f"{name},\nfirst answers", *styles[name])
            for name in CORRECTING
        ),
        (accuracy, CORRECTING[1], "in_force_percent", f"{CORRECTING[1]},\nin force", GREEN, "-."),
    ]
    for axes, name, field, text, colour, style in lines:
        shapes: tuple[Mapping[str, Any], ...] = ({"linestyle": style, "label": text}, SPARK)
        for run, shape in zip(drawn[name], shapes, strict=True):
            xs = [each.at_s for each in run]
            axes.plot(xs, [getattr(each, field) for each in run], color=colour, **shape)
    for axes in (buffer, latency, accuracy):
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
