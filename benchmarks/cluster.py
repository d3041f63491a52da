"""Predictions of SimPy beside a cluster of three hosts, as ``cluster-*.svg``.

Hosts are network namespaces of this machine (``tests/harness/hosts.py``), which needs root. Their
links are shaped to 1, 10 and 100 Mb/s. For each link a calibration is measured
(:mod:`straggler.calibrating`); SimPy predicts every cell from it, and then Spark runs the cell.
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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

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
from benchmarks._cluster_table import LINKS_MBIT, Cell, Side, draw, figures_of
from sim.calibration import Calibration
from tests.harness.hosts import Hosts, three_hosts
from tests.harness.namespaces import HostProblem, missing

POLICIES = ("tag", "key", "shuffle")
WORKERS, BLOCK_SIZES = (2, 4, 6), (8, 64, 256)
SLOTS = 2
"""Task slots of each host: six in all, as many as instances and as workers of the longest chain."""
PATIENCE_S = 400.0


def measure() -> dict[str, float]:
    """Return the figures of every cell; raise :class:`CannotMeasure` without root."""
    if problem := missing():
        raise CannotMeasure(problem)
    cells: list[Cell] = []
    try:
        with (
            tempfile.TemporaryDirectory(prefix="straggler-bench-") as folder,
            three_hosts(Path(folder), cores=SLOTS) as hosts,
        ):
            for mbit in LINKS_MBIT:
                for host in hosts.names:
                    hosts.shape(host, mbit)
                cells += _measure_link(hosts, mbit)
    except HostProblem as lacking:
        raise CannotMeasure(str(lacking)) from lacking
    draw(cells)
    return dict(figures_of(cells))


def _measure_link(hosts: Hosts, mbit: int) -> Iterator[Cell]:
    """Calibrate, predict and measure the cells of one link."""
    predicted_s: dict[str, list[float]] = {}
    predicted: dict[JoinCell, Times] = {}

    def choose(found: Calibration) -> list[JoinCell]:
        predicted_s.update({policy: predict_grouping(found, policy) for policy in POLICIES})
        shapes = [(workers, size) for workers in WORKERS for size in BLOCK_SIZES]
        cells = [JoinCell(*shape, LOAD * find_rate(found, *shape)) for shape in shapes]
        predicted.update({cell: predict_join(found, cell) for cell in cells})
        return cells

    measured = run_cells(hosts, f"{mbit}", POLICIES, choose)
    for policy, spent_s in predicted_s.items():
        rate_hz = LOAD * grouping_saturation_hz(spent_s)
        sides = [
            Side(grouping_saturation_hz(each), *grouping_latencies_s(rate_hz, each))
            for each in (spent_s, measured[policy])
        ]
        yield Cell(mbit, "grouping", policy, *sides)
    for cell, times in predicted.items():
        sides = [
            Side(join_epochs_hz(cell, each), *join_latencies_s(cell, each))
            for each in (times, times_of(cell, measured))
        ]
        yield Cell(mbit, "join", cell.name, *sides)


def times_of(cell: JoinCell, measured: dict[str, Any]) -> Times:
    """Return what was measured of a chain."""
    found = measured[cell.name]
    return Times(found["spent_s"], later_s(cell, found["pairs"]))


def run_cells(
    hosts: Hosts,
    name: str,
    policies: Sequence[str],
    choose: Callable[[Calibration], Sequence[JoinCell]],
) -> dict[str, Any]:
    """Calibrate the hosts, and run the policies and the chains that are chosen then, by name."""
    folder = hosts.shared / name
    folder.mkdir()
    wanted = json.dumps({"calibrate": True})
    command = (sys.executable, "-m", "benchmarks._cluster_cells", hosts.master, str(folder), wanted)
    process = hosts.start(hosts.names[0], *command)
    file = folder / "calibration.json"
    _wait(process, file)
    cells = choose(Calibration.from_json(json.loads(file.read_text("utf-8"))))
    (folder / "new.json").write_text(json.dumps({"grouping": policies, "join": cells}), "utf-8")
    (folder / "new.json").rename(folder / "cells.json")
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    measured: dict[str, Any] = json.loads((folder / "results.json").read_text("utf-8"))
    return measured


def _wait(process: "subprocess.Popen[str]", file: Path) -> None:
    """Wait for a file that the process writes."""
    ends_s = time.monotonic() + PATIENCE_S
    while not (file.exists() and file.read_text("utf-8").endswith("}")):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < ends_s, "the calibration takes too long"
        time.sleep(0.1)
