"""Clusters on which Spark's operator fails: their report, and how they are drawn."""

from math import inf, nan

import pytest

from model.vocabulary import JoinConfig
from model.vocabulary.join import And
from properties.operators.join import SparkMachine
from properties.operators.timed import OPERATORS, report
from properties.stream_packs import collect
from sim.join import simulate
from sim.kernel.plan import Plan
from sim.kernel.source import Recording, Row
from spark_impl.windows.kernel import OpenWindows
from straggler.judging.plan_counterexamples import SeededPlan, describe, smallest

AT_US = 1_577_836_800_000_000
ROWS = tuple([Row(AT_US + n, AT_US + 1_000 * n, "ab"[n % 2], float(n)) for n in range(13)])


def test_a_drawn_cluster_is_one_line() -> None:
    for operator in OPERATORS.values():
        if operator.name != "script":  # whose query is a program
            for drawn in collect(operator.drawn, 5, seed=1):
                assert len(repr(drawn)) < 800


def test_a_failure_is_reported_on_the_smallest_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = OPERATORS["slack"]
    monkeypatch.setattr(OpenWindows, "miss", lambda *_: None)  # no late pair is told
    drawn = next(each for each in collect(operator.drawn, 50, 1) if operator.broken(each))
    lines = report(operator, drawn).splitlines()
    assert lines[0] == "In room slack, Spark's operator does not do what the model does:"
    assert lines[1].startswith("late task")
    small = lines[lines.index("The smallest cluster like it:") :]
    assert not [line for line in small if line.startswith("source-1 ")]
    assert "worker-0 has speed 1." in small
    assert "There:" in small
    assert small[small.index("There:") + 1].startswith("late task")
    assert len(small) < 16


def test_a_recording_is_shrunk_and_described_tuple_by_tuple() -> None:
    def fails(case: SeededPlan) -> bool:
        recordings = [each for each in case.plan.sources if isinstance(each, Recording)]
        return {3.0, 8.0} <= {row.value for each in recordings for row in each.rows}

    small = smallest(SeededPlan(Plan((Recording(ROWS),)), 7), fails, seconds=inf)
    assert describe(small)[:3] == [
        "source-0 replays 2 recorded tuples.",
        f"  Tuple 0 of key 'b' and value 3.0, event time {AT_US + 3}, arrives at 3ms.",
        f"  Tuple 1 of key 'a' and value 8.0, event time {AT_US + 8}, arrives at 8ms.",
    ]


def test_blocks_without_tuples_have_no_share_of_headers() -> None:
    config = JoinConfig(1_000, (("all", And()),), workers=2)
    plan = Plan((Recording((Row(AT_US, AT_US, "a", nan, 0, "R"),)),))
    run = simulate(plan, config, 0, machine=SparkMachine)
    assert run.summary["rejected"] == 1
    assert "header_share" not in run.summary
