"""A timed run of room ``watermark`` as SVG."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from sim.drawing import BLUE, ORANGE, SECOND_US, line, panels, save
from sim.kernel.run import Run


def plot_run(run: Run, path: Path) -> None:
    """Write the run over time: waiting, disorder, latency and coverage of the answers."""
    save(draw_run, (run,), path)


def draw_run(run: Run) -> Figure:
    """The figure that :func:`plot_run` writes."""
    label = "time since the start of the run (s)"
    figure, (waiting, disorder, latency, coverage) = panels(
        4, (8.0, 8.0), _title(run.summary), label
    )
    series = run.series
    waiting.set_title("Waiting for stragglers")
    waiting.set_ylabel("seconds")
    lag = "watermark behind\nthe time"
    line(waiting, series, "watermark_lag_us", SECOND_US, lag, ORANGE, "-")
    line(waiting, series, "wait_us", SECOND_US, "wait", BLUE, "--")
    disorder.set_title("Disorder of the last arrivals")
    disorder.set_ylabel("D")
    line(disorder, series, "disorder", 1.0, "mean of the tasks", BLUE, "-")
    latency.set_title("From the end of a window to its answer")
    latency.set_ylabel("seconds")
    line(latency, series, "window_latency_us", SECOND_US, "mean", BLUE, "-")
    coverage.set_title("Tuples that answers contained")
    coverage.set_ylabel("% of the window's tuples")
    line(coverage, series, "coverage", 0.01, "mean", BLUE, "-")
    for axes in (waiting, disorder, latency):
        axes.set_ylim(bottom=0)
    for axes in (waiting, disorder, latency, coverage):
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    coverage.margins(y=0.1)
    return figure


def _title(summary: Mapping[str, float | int | str]) -> str:
    tasks = "1 task" if summary["tasks"] == 1 else f"{summary['tasks']} tasks"
    query = f"{summary['aggregate']}, reading {summary['reading']}, k = {summary['k']}, {tasks}"
    return f"{summary['input']}\n{query}, seed {summary['seed']}"
