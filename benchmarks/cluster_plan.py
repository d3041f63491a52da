"""Chains that ``straggler plan`` finds, on three hosts: whether they keep up, and their latency.

Hosts are network namespaces of this machine, as in :mod:`benchmarks.cluster`, with links of 100
Mb/s. The costs are those of their calibration; comparisons take 0.5 ms, in which workers sleep, so
all slots are equally fast. For each of three rates the plan is run on Spark, in epochs as long as
the plan assumes. *Busy* is the time that epochs take by their length: above 1, a chain falls
behind. Latency is that of the pairs whose later tuple came in the second epoch.
"""

import tempfile
from pathlib import Path

from benchmarks import CannotMeasure
from benchmarks._cluster_cells import COMPARISON_US, JOIN_KEYS, SECOND_US, WINDOW_S, JoinCell
from benchmarks._cluster_predicted import join_latencies_s
from benchmarks.cluster import SLOTS, run_cells, times_of
from sim.calibration import Calibration
from sim.join.demand import Demand, hardware_of
from sim.join.planning import Trial, find_chain
from tests.harness.hosts import three_hosts
from tests.harness.namespaces import HostProblem, missing

MBIT = 100
RATES_HZ = (1_600, 2_000, 2_400)
LATENCY_US = 60 * SECOND_US
EPOCHS = 3


def measure() -> dict[str, float]:
    """Return the figures of each rate; raise :class:`CannotMeasure` without root."""
    if problem := missing():
        raise CannotMeasure(problem)
    planned: dict[JoinCell, Trial] = {}

    def choose(found: Calibration) -> list[JoinCell]:
        planned.update(dict(plan(found, rate_hz) for rate_hz in RATES_HZ))
        return list(planned)

    try:
        with (
            tempfile.TemporaryDirectory(prefix="straggler-bench-") as folder,
            three_hosts(Path(folder), cores=SLOTS) as hosts,
        ):
            for host in hosts.names:
                hosts.shape(host, MBIT)
            measured = run_cells(hosts, "plan", (), choose)
    except HostProblem as lacking:
        raise CannotMeasure(str(lacking)) from lacking
    figures: dict[str, float] = {}
    for cell, trial in planned.items():
        times = times_of(cell, measured)
        p50_s, p99_s = join_latencies_s(cell, times)
        found = {
            "workers": cell.workers,
            "block size": cell.block_size,
            "busy": sum(times.spent_s[1:]) / sum(cell.epochs_s[1:]),
            "p50, planned (s)": (trial.p50_us or 0.0) / SECOND_US,
            "p50, measured (s)": p50_s,
            "p99, planned (s)": (trial.p99_us or 0.0) / SECOND_US,
            "p99, measured (s)": p99_s,
        }
        figures |= {f"{cell.rate_hz:,.0f} tuples/s: {name}": value for name, value in found.items()}
    return figures


def plan(found: Calibration, rate_hz: float) -> tuple[JoinCell, Trial]:
    """Return the smallest chain for a rate, as a cell and as planned."""
    hardware = hardware_of(found)._replace(speed=1.0)
    assert hardware.costs.comparison_us == COMPARISON_US
    demand = Demand(rate_hz, round(WINDOW_S * SECOND_US), LATENCY_US, 1 / JOIN_KEYS)
    trial = find_chain(demand, hardware, 0).chain
    length_s = hardware.epoch_length_us / SECOND_US
    return JoinCell(trial.workers, trial.block_size, rate_hz, (length_s,) * EPOCHS), trial
