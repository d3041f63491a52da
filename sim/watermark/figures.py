"""A timed run of room ``watermark`` as SVG."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from sim.kernel.run import TimedRun
from sim.report.drawing import Panel, PanelLine, draw_timed_run, save


def plot_run(run: TimedRun, path: Path) -> None:
    """Write the run over time: faults, workers, waiting, latency, disorder and coverage."""
    save(draw_run, (run,), path)


PANELS = (
    Panel("Disorder of the last arrivals", "D", (PanelLine("disorder", "mean of the tasks"),)),
    Panel(
        "Tuples that answers contained",
        "% of the window's tuples",
        (PanelLine("coverage", "mean", 0.01),),
        is_from_0=False,
    ),
)


def draw_run(run: TimedRun) -> Figure:
    """Return the figure that :func:`plot_run` writes."""
    return draw_timed_run(
        run,
        _title(run.summary),
        PANELS,
        lag={"watermark_lag_us": "lag", "wait_us": "wait"},
        latency={
            "latency_us": "tuple's arrival\nto first answer",
            "window_latency_us": "window's end\nto first answer",
        },
    )


def _title(summary: Mapping[str, float | int | str]) -> str:
    tasks = "1 task" if summary["tasks"] == 1 else f"{summary['tasks']} tasks"
    query = f"{summary['aggregate']}, reading {summary['reading']}, k = {summary['k']}, {tasks}"
    return f"{summary['input']}\n{query}, seed {summary['seed']}"
