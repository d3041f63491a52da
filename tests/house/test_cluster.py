"""The benchmark of a cluster, without one: predictions, latencies, the table and the pictures."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import _cluster_cells as cells
from benchmarks import _cluster_predicted as predicted
from benchmarks._cluster_cells import JoinCell
from benchmarks._cluster_predicted import Times
from benchmarks._cluster_table import (
    Cell,
    Side,
    cells_of,
    draw,
    figures_of,
    is_within_goal,
    ranks_agree,
    rows_of,
)
from model.grouping.machine import Machine
from tests.sim.calibrations import with_costs

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


def test_slow_links_make_epochs_longer() -> None:
    cell = JoinCell(4, 8, 1_400.0)
    slow = with_costs(0.0, latency_us=1.0, bandwidth_mbps=1.0)
    fast_s, slow_s = (sum(predicted.predict_join(each, cell).spent_s) for each in (FREE, slow))
    assert slow_s > 1.05 * fast_s


def test_a_micro_batch_starts_when_it_is_complete_and_the_one_before_is_done() -> None:
    assert predicted.ends_s([1.0, 1.0, 1.0], [0.5, 1.5, 0.25]) == [1.5, 3.5, 3.75]


def test_latency_is_that_of_pairs_due_in_the_second_epoch() -> None:
    """Epochs end at 1.5, 3.0 and 4.5 s."""
    times = Times([0.5, 0.5, 0.5], [[0.9, 1.1], [1.0, 2.0], [2.4, 2.6]])
    expected = np.percentile([0.4, 2.0, 1.0, 2.1], (50, 99))
    assert predicted.join_latencies_s(JoinCell(2, 8, 1.0), times) == pytest.approx(tuple(expected))


def test_figures_are_read_back() -> None:
    known = [_cell("tag", 100.0, 110.0), _cell("4, 64", 50.0, 40.0)]
    assert cells_of(dict(figures_of(known))) == known


@pytest.mark.parametrize(("measured_hz", "good"), [(119.0, True), (81.0, True), (121.0, False)])
def test_a_goal_is_for_both_directions(measured_hz: float, good: bool) -> None:
    cell = _cell("tag", 100.0, measured_hz)
    assert is_within_goal(cell) == good
    assert next(rows_of([cell]))[-1] == ("yes" if good else "no")


def test_policies_keep_their_ranks() -> None:
    assert ranks_agree([_cell("tag", 3.0, 5.0), _cell("key", 2.0, 4.0)])
    assert not ranks_agree([_cell("tag", 3.0, 4.0), _cell("key", 2.0, 5.0)])


def test_a_picture_is_drawn_for_each_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.__main__.MEASURED", tmp_path)
    draw([_cell("tag", 3.0, 5.0), _cell("4, 64", 2.0, 4.0)._replace(room="join")])
    assert {file.name for file in tmp_path.iterdir()} == {
        "cluster-grouping.svg",
        "cluster-join.svg",
    }
