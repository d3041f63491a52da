"""Plots of runs of room ``join`` as SVG."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from sim.join.room import ChainRun
from sim.report.drawing import Panel, PanelLine, draw_timed_run, save

PANELS = (
    Panel("Workers in the chain", "workers", (PanelLine("workers", "workers"),)),
    Panel(
        "Utilisation: tuples held by a worker, of its capacity",
        "%",
        (PanelLine("utilisation", "mean", 0.01), PanelLine("fullest", "fullest worker", 0.01)),
    ),
    Panel(
        "Tuples held by all workers",
        "tuples",
        (PanelLine("held", "held"), PanelLine("waiting", "waiting\nin the log")),
    ),
    Panel(
        "Largest block, and share of arrivals that is shed",
        "tuples, %",
        (PanelLine("block_size", "block (tuples)"), PanelLine("shed", "shed (%)", 0.01)),
    ),
)


def plot_run(run: ChainRun, path: Path) -> None:
    """Write a run as one SVG.

    Faults, queues and work of each worker, lag of the watermark, latency of results, number of
    workers and their utilisation, tuples held and arrivals waiting, block size and share shed, all
    over the time since the start of the run.
    """
    save(draw_run, (run,), path)


def draw_run(run: ChainRun) -> Figure:
    """Return the figure that :func:`plot_run` writes."""
    latency = {"latency_us": "later tuple's arrival\nto result"}
    return draw_timed_run(run, _title(run.summary), PANELS, latency=latency)


def _title(summary: Mapping[str, float | int | str]) -> str:
    return f"{summary['input']}\n{summary['workers']} workers at the start, seed {summary['seed']}"
