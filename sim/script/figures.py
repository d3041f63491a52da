"""Plots of runs of room ``script`` as SVG."""

from pathlib import Path

from matplotlib.figure import Figure

from sim.kernel.run import TimedRun
from sim.report.drawing import Panel, PanelLine, draw_timed_run, save


def plot_run(run: TimedRun, path: Path) -> None:
    """Write a run over time: faults, workers, how late results are, what workers are sent."""
    save(draw_run, (run,), path)


PANELS = (
    Panel(
        "Tuples of sensors that workers are sent",
        "a second",
        (
            PanelLine("tuples_hz", "all workers"),
            PanelLine("most_hz", "most"),
            PanelLine("least_hz", "least"),
        ),
    ),
    Panel(
        "Results that workers send each other",
        "a second",
        (PanelLine("results_hz", "all workers"),),
    ),
)


def draw_run(run: TimedRun) -> Figure:
    """Return the figure that :func:`plot_run` writes."""
    summary = run.summary
    workers = "1 worker" if summary["workers"] == 1 else f"{summary['workers']} workers"
    title = (
        f"{summary['input']}\n"
        f"{workers}, placement {summary['placement']}: {summary['way']}, seed {summary['seed']}"
    )
    return draw_timed_run(
        run,
        title,
        PANELS,
        lag={"watermark_lag_us": "oldest result\nstill to come"},
        latency={"latency_us": "end of a window\nuntil its result, mean"},
    )
