"""Predictions of SimPy beside a cluster of three hosts, as ``cluster-*.svg``.

Hosts are network namespaces of this machine (``tests/harness/hosts.py``), which needs root. Their
links are shaped to 1, 10 and 100 Mb/s. For each link a calibration is measured
(:mod:`properties.calibrating`); SimPy predicts every cell from it, and then Spark runs the cell.
Workers sleep for the time that their work takes, so a few cores are enough.

* ``grouping``: six instances, half of them four times slower, and keys by Zipf's law, in
  micro-batches. Throughput is that of two micro-batches that follow one another.
* ``join``: chains whose comparisons take 0.5 ms, in epochs. Throughput is that of two epochs with
  the arrivals of three seconds, which come at 70% of the predicted saturation.

Latency is that of a stream at 70% of the predicted throughput (``join``: saturation). The times of
micro-batches and epochs are measured, one after the other; when arrivals come is computed. A result
counts at the end of its epoch, a tuple of ``grouping`` at the end of its micro-batch.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import CannotMeasure
from benchmarks._cluster_cells import JoinCell
from benchmarks._cluster_predicted import (
    LOAD,
    Times,
    find_rate,
    grouping_latencies_s,
    grouping_saturation_hz,
    join_epochs_hz,
    join_latencies_s,
    later_s,
    predict_grouping,
    predict_join,
)
from sim.calibration import Calibration
from tests.harness.hosts import Hosts, three_hosts
from tests.harness.namespaces import HostProblem, missing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINKS_MBIT = (1, 10, 100)
POLICIES = ("tag", "key", "shuffle")
WORKERS, BLOCK_SIZES = (2, 4, 6), (8, 64, 256)
PATIENCE_S = 400.0
GOALS = {"tuples/s": 0.20, "p50, s": 0.30}
"""Largest relative difference between prediction and measurement."""


FIGURES = ("tuples/s", "p50, s", "p99, s")


class Side(NamedTuple):
    """Figures of a cell, predicted or measured."""

    rate_hz: float
    p50_s: float
    p99_s: float


class Cell(NamedTuple):
    """A cell of the table."""

    mbit: int
    room: str
    name: str
    predicted: Side
    measured: Side


def measure() -> dict[str, float]:
    """Return the figures of every cell; raise :class:`CannotMeasure` without root."""
    if problem := missing():
        raise CannotMeasure(problem)
    cells: list[Cell] = []
    try:
        with (
            tempfile.TemporaryDirectory(prefix="straggler-bench-") as folder,
            three_hosts(Path(folder)) as hosts,
        ):
            for mbit in LINKS_MBIT:
                for host in hosts.names:
                    hosts.shape(host, mbit)
                cells += _measure_link(hosts, mbit)
    except HostProblem as lacking:
        raise CannotMeasure(str(lacking)) from lacking
    draw(cells)
    return dict(_figures(cells))


def _measure_link(hosts: Hosts, mbit: int) -> Iterator[Cell]:
    """Calibrate, predict and measure the cells of one link."""
    folder = hosts.shared / f"{mbit}"
    folder.mkdir()
    wanted = json.dumps({"calibrate": True})
    command = (sys.executable, "-m", "benchmarks._cluster_cells", hosts.master, str(folder), wanted)
    process = hosts.start(hosts.names[0], *command)
    file = folder / "calibration.json"
    _wait(process, file)
    found = Calibration.from_json(json.loads(file.read_text("utf-8")))
    grouping = {policy: predict_grouping(found, policy) for policy in POLICIES}
    shapes = [(workers, size) for workers in WORKERS for size in BLOCK_SIZES]
    join = [JoinCell(*shape, LOAD * find_rate(found, *shape)) for shape in shapes]
    predicted = {cell: predict_join(found, cell) for cell in join}
    (folder / "new.json").write_text(json.dumps({"grouping": POLICIES, "join": join}), "utf-8")
    (folder / "new.json").rename(folder / "cells.json")
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    measured = json.loads((folder / "results.json").read_text("utf-8"))
    for policy, spent_s in grouping.items():
        rate_hz = LOAD * grouping_saturation_hz(spent_s)
        sides = [
            Side(grouping_saturation_hz(each), *grouping_latencies_s(rate_hz, each))
            for each in (spent_s, measured[policy])
        ]
        yield Cell(mbit, "grouping", policy, *sides)
    for cell in join:
        name = f"{cell.workers}, {cell.block_size}"
        spark = Times(measured[name]["spent_s"], later_s(cell, measured[name]["pairs"]))
        sides = [
            Side(join_epochs_hz(cell, times), *join_latencies_s(times))
            for times in (predicted[cell], spark)
        ]
        yield Cell(mbit, "join", name, *sides)


def _wait(process: "subprocess.Popen[str]", file: Path) -> None:
    """Wait for a file that the process writes."""
    ends_s = time.monotonic() + PATIENCE_S
    while not (file.exists() and file.read_text("utf-8").endswith("}")):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < ends_s, "the calibration takes too long"
        time.sleep(0.1)


def _figures(cells: Sequence[Cell]) -> Iterator[tuple[str, float]]:
    for cell in cells:
        label = f"{cell.room}, {cell.name}, {cell.mbit} Mb/s"
        for who in ("predicted", "measured"):
            side: Side = getattr(cell, who)
            for figure, value in zip(FIGURES, side, strict=True):
                yield f"{label}: {who} {figure}", value


def cells_of(figures: Mapping[str, float]) -> list[Cell]:
    """Return the cells of stored figures, by link, room and name, as they were measured."""
    names = list(dict.fromkeys(label.partition(":")[0] for label in figures))
    found = []
    for label in names:
        room, *middle, link = label.split(", ")
        sides = [
            Side(
                *(
                    figures[f"{label}: {who} {figure}"]
                    for figure in ("tuples/s", "p50, s", "p99, s")
                )
            )
            for who in ("predicted", "measured")
        ]
        found.append(Cell(int(link.split()[0]), room, ", ".join(middle), *sides))
    return found


# ------------------------------------------------------------------------------------ pictures


def draw(cells: Sequence[Cell]) -> None:
    """Draw throughput and latency of each room, predicted and measured."""
    from benchmarks.__main__ import MEASURED
    from sim.report.drawing import save

    MEASURED.mkdir(exist_ok=True)
    for room in ("grouping", "join"):
        own = [cell for cell in cells if cell.room == room]
        save(picture, (room, own), MEASURED / f"cluster-{room}.svg")


def picture(room: str, cells: Sequence[Cell]) -> "Figure":
    """Return a picture of the cells of a room: a point is a cell, on the diagonal if predicted."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    from sim.report.drawing import BLACK, BLUE, GREEN, ORANGE

    figure = Figure(figsize=(8.0, 4.2), layout="constrained", facecolor="white")
    FigureCanvasSVG(figure)
    figure.suptitle(f"Room {room} on three hosts: measured over predicted")
    panels = figure.subplots(1, 2)
    titles = (("rate_hz", "throughput (tuples/s)", 0.20), ("p50_s", "latency, p50 (s)", 0.30))
    names = list(dict.fromkeys(cell.name for cell in cells))
    marks = dict(zip(names, "osv^D*XP+", strict=False))
    colours = dict(zip(LINKS_MBIT, (ORANGE, GREEN, BLUE), strict=True))
    for axes, (field, title, goal) in zip(panels, titles, strict=True):
        points = [(getattr(c.predicted, field), getattr(c.measured, field)) for c in cells]
        low, high = min(map(min, points)) * 0.9, max(map(max, points)) * 1.1
        axes.plot([low, high], [low, high], color=BLACK, linewidth=0.8)
        ends = [low, high]
        axes.fill_between(
            ends, [(1 - goal) * x for x in ends], [(1 + goal) * x for x in ends], alpha=0.12
        )
        for cell, (x, y) in zip(cells, points, strict=True):
            axes.plot(x, y, marks[cell.name], color=colours[cell.mbit], ms=5.0)
        axes.set(title=title, xlabel="predicted", ylabel="measured")
        axes.set_xlim(low, high)
        axes.set_ylim(low, high)
    legend = [
        *(panels[1].plot([], [], marks[name], color=BLACK, label=name)[0] for name in names),
        *(
            panels[1].plot([], [], "s", color=colours[mbit], label=f"{mbit} Mb/s")[0]
            for mbit in LINKS_MBIT
        ),
    ]
    panels[1].legend(handles=legend, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
