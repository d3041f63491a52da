"""The runner of `make bench`, and figures of benchmarks on work that takes no time."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import CannotMeasure
from benchmarks import _cluster_cells as cells
from benchmarks import _cluster_predicted as predicted
from benchmarks.__main__ import Benchmark, Figure, main
from benchmarks._cluster_cells import JoinCell
from benchmarks._cluster_predicted import Times
from benchmarks._cluster_table import Cell, Side, is_within_goal, rows_of
from benchmarks.join_load import CONFIG, RATE, arrivals, epochs_of, figures_of, pairs_of
from model.grouping.machine import Machine
from model.vocabulary.join_load import Measured
from tests.sim.calibrations import with_costs

# --------------------------------------------------------------------------------------- the runner


def measure() -> dict[str, Figure]:
    return {"rows_per_s": 412_345.6, "matches": 335_220}


FAKES: dict[str, Benchmark] = {"join": measure, "slack": lambda: {"ratio": 1.25}}


def test_every_benchmark_runs_and_leaves_its_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], FAKES, tmp_path / "results") == 0
    shown = capsys.readouterr().out
    for text in ("join", "rows_per_s", "412,346", "slack", "ratio", "1.25"):
        assert text in shown
    record = json.loads((tmp_path / "results" / "join.json").read_text(encoding="utf-8"))
    assert set(record) == {"benchmark", "python", "spark", "cores", "figures"}
    assert record["figures"] == {"rows_per_s": 412_345.6, "matches": 335_220}


def test_an_unknown_name_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["slack", "slakc"], FAKES, tmp_path) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "There is no benchmark 'slakc': choose from join, slack.\n"
    assert not list(tmp_path.iterdir())


def test_a_benchmark_that_cannot_run_here_says_why_and_the_others_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def needs_root() -> dict[str, Figure]:
        raise CannotMeasure("it needs root")

    assert main([], {"cluster": needs_root, **FAKES}, tmp_path) == 2
    captured = capsys.readouterr()
    assert captured.err == "Benchmark cluster cannot run here: it needs root.\n"
    assert {path.stem for path in tmp_path.iterdir()} == set(FAKES)


# ----------------------------------------------------------------------------- a cluster, predicted


FREE = with_costs(0.0, latency_us=1.0, bandwidth_mbps=1e6)
"""A cluster in which only emulated work takes time."""


def _cell(name: str, predicted_hz: float, measured_hz: float) -> Cell:
    return Cell(10, "grouping", name, Side(predicted_hz, 1.0, 2.0), Side(measured_hz, 1.29, 9.0))


def test_a_micro_batch_takes_its_start_and_the_work_of_the_busiest_instance() -> None:
    """`key` routes by hash alone: count the tuples of each instance."""
    machine = Machine(cells.grouping_config("key"))
    keys, seq, expected_s = cells.grouping_keys(), 0, []
    for size in cells.BATCHES:
        counts = np.zeros(cells.INSTANCES)
        for _ in range(size):
            counts[machine.route(0, keys[seq])] += 1
            seq += 1
        expected_s.append(max(counts * cells.TIMES_US) / 1e6)
    assert predicted.predict_grouping(FREE, "key") == pytest.approx(expected_s, rel=1e-3)
    started = predicted.predict_grouping(
        with_costs(0.0, batch_us=5e5, latency_us=1.0, bandwidth_mbps=1e6), "key"
    )
    assert np.subtract(started, expected_s) == pytest.approx([0.5] * 3, abs=1e-2)


def test_an_epoch_of_an_ideal_chain_takes_the_comparisons_that_are_due() -> None:
    """Two workers need at least half of the time of all comparisons."""
    cell = JoinCell(2, 8, 1_000.0)
    times = predicted.predict_join(FREE, cell)
    due = sum(map(len, times.due_s))
    least_s = due * cells.COMPARISON_US / 1e6 / 2
    assert least_s <= sum(times.spent_s) <= 1.5 * least_s
    with_start = predicted.predict_join(
        with_costs(0.0, epoch_us=3e5, latency_us=1.0, bandwidth_mbps=1e6), cell
    )
    assert np.subtract(with_start.spent_s, times.spent_s) == pytest.approx([0.3] * 3)


def test_a_micro_batch_starts_when_it_is_complete_and_the_one_before_is_done() -> None:
    assert predicted.ends_s([1.0, 1.0, 1.0], [0.5, 1.5, 0.25]) == [1.5, 3.5, 3.75]


def test_latency_is_that_of_pairs_due_in_the_second_epoch() -> None:
    """Epochs end at 1.5, 3.0 and 4.5 s."""
    times = Times([0.5, 0.5, 0.5], [[0.9, 1.1], [1.0, 2.0], [2.4, 2.6]])
    expected = np.percentile([0.4, 2.0, 1.0, 2.1], (50, 99))
    assert predicted.join_latencies_s(JoinCell(2, 8, 1.0), times) == pytest.approx(tuple(expected))


@pytest.mark.parametrize(("measured_hz", "good"), [(119.0, True), (81.0, True), (121.0, False)])
def test_a_goal_is_for_both_directions(measured_hz: float, good: bool) -> None:
    cell = _cell("tag", 100.0, measured_hz)
    assert is_within_goal(cell) == good
    assert next(rows_of([cell]))[-1] == ("yes" if good else "no")


# ----------------------------------------------------------------------------------- the case study


def test_pairs_are_those_of_a_nested_loop() -> None:
    given = arrivals().slice(0, 3_000)
    gone = set(range(0, 3_000, 7))
    kept = [row for row in given.to_pylist() if row["seq"] not in gone]
    r, s = ([row for row in kept if row["stream"] == name] for name in "RS")
    by_key: dict[str, list[int]] = {}
    for row in s:
        by_key.setdefault(row["key"], []).append(row["event_time_us"])
    found = sum(
        abs(row["event_time_us"] - ts) <= CONFIG.window_us
        for row in r
        for ts in by_key.get(row["key"], [])
    )
    assert pairs_of(given, gone) == found > 1_000


def test_an_epoch_has_its_own_arrivals() -> None:
    given = arrivals().slice(0, 15 * RATE)
    measured = [
        Measured(0, 5_000_000, (1_000_000, 2_000_000), 10 * RATE, RATE, 10),
        Measured(1, 5_000_000, (5_000_000,), 5 * RATE, 0, 10),
    ]
    first, second = epochs_of(given, [11.0, 16.0], measured, [20, 5, 1])
    assert (first.workers, first.utilisation, first.shed) == (2, 30.0, 10.0)
    assert first.latency_s == pytest.approx(6.0, abs=0.6 / RATE)
    assert (second.workers, second.utilisation, second.block_size) == (1, 100.0, 5)
    assert second.latency_s == pytest.approx(16 - 12.5, abs=0.6 / RATE)
    assert figures_of([first, second], "start")["mean share shed, %"] == 5.0
    assert figures_of([first, second], "burst") == {}
