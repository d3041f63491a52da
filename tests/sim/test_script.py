"""Sensor scripts: runs of two workers by hand, and placements that change no result."""

from dataclasses import replace
from typing import Any, Literal

import pytest

from model.vocabulary import Fault, ScriptConfig
from model.vocabulary.script.config import Hosted, Rejected, Result, Undefined
from model.vocabulary.script.tree import (
    Arithmetic,
    Name,
    Sensor,
    Statement,
    Window,
    Workflow,
)
from sim.kernel.distributions import Constant
from sim.kernel.faults import Fail
from sim.kernel.link import Place, Tier, Tiers
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.run import TimedRun, run
from sim.kernel.source import Recording, Row
from sim.kernel.trigger import At
from sim.script import from_settings, simulate
from sim.script.cluster import ScriptCluster
from sim.script.host import ScriptTuning
from sim.script.placements import PLACEMENTS, compile_placed
from sim.script.worker import Worker as Machine
from straggler.rooms.script.spark_machine import SparkMachine

# ------------------------------------------------------------------------------------------ by hand


A, B = Sensor("a"), Sensor("b")
CLUSTER = Cluster(
    (Worker(place=Place(process=1)), Worker(place=Place(process=2))),
    Constant(1_000.0),
    tuple_bytes=125,
)
TUNING = ScriptTuning("all-split", result_us=100.0, result_bytes=250)
TIERS = Tiers(node=Tier(20.0, 10.0))
"""A tuple is 100 us on a line and a result 200, and 20 more to arrive."""


class ByHand:
    """A run whose room is looked at."""

    def __init__(self, plan: Plan, config: ScriptConfig) -> None:
        scripts = compile_placed(config, TUNING.placement)
        self.graph, self.worker = scripts.graph, scripts.placement.worker
        self.room, _ = run(
            plan, 0, lambda env, seeds: ScriptCluster(env, seeds, plan, scripts, Machine)
        )
        self.run = simulate(plan, config, 0)

    @property
    def nodes(self) -> list[int]:
        """Nodes of the outputs x, y and z."""
        return [output.node for output in self.graph.outputs]

    def results(self, worker: int) -> list[tuple[int, float]]:
        """Return a worker's results that were known before the end, and when they were known."""
        results = self.room.hosts[worker].record.results
        return [(each.stamp_us, each.at_us) for each in results if not each.is_last]


def measured(*events: tuple[str, int], flush: bool = True, **changes: Any) -> ByHand:
    """Run two windows on two workers, and their difference."""
    said = (
        Statement("x", Window("max", A, 1_000, 1_000)),
        Statement("y", Window("max", B, 1_000, 1_000)),
        Statement("z", Arithmetic("-", Name("x"), Name("y"))),
    )
    sensors = (("a", 7_200), ("b", 3_600))
    config = ScriptConfig((Workflow("w", said),), sensors, 2, 0, 100)
    rows = [
        Row(at_ms * 1_000, at_ms * 1_000, sensor, float(seq))
        for seq, (sensor, at_ms) in enumerate(events)
    ]
    plan = Plan(
        (Recording(tuple(rows)),),
        cluster=CLUSTER,
        tuning=TUNING,
        tiers=TIERS,
        trigger=At(()),
        flush=flush,
        epoch_us=0,
    )
    return ByHand(replace(plan, **changes), config)


STREAM = ("a", 100), ("b", 300), ("a", 1_200), ("b", 1_600)


def test_a_result_takes_the_way_the_work_and_the_line_to_the_other_worker() -> None:
    seen = measured(*STREAM)
    assert [seen.worker[each] for each in seen.nodes] == [0, 1, 0]
    stamp_us = 999_000
    # The tuple that passes the end: 100 on the line, 20 to arrive, 1,000 of work, 100 for a result.
    own_us = 1_200_000 + 100 + 20 + 1_000 + 100
    other_us = 1_600_000 + 100 + 20 + 1_000 + 100
    # On to the other worker: 200 on the line, 20 to arrive, 100 to be taken; then the difference.
    both_us = other_us + 200 + 20 + 100 + 100
    assert seen.results(0) == [(stamp_us, own_us), (stamp_us, both_us)]
    assert seen.results(1) == [(stamp_us, other_us)]
    first = next(seen.room.sent())
    assert (first.sender, first.reader, first.stamps_us, first.at_us) == (
        1,
        0,
        (stamp_us,),
        other_us,
    )


def test_a_worker_that_fails_begins_again_behind_its_last_mark() -> None:
    # It fails while it takes in the second tuple of b, and so has to take in both again.
    faults = (Fail("worker-1", 1_600_500, 1_000),)
    seen = measured(*STREAM, faults=faults)
    other_us = 1_601_500 + 2 * 1_000 + 100
    assert seen.results(1) == [(999_000, other_us)]
    assert seen.run.summary["served_again"] == 1
    assert seen.run.workload.faults == (Fault("kill", 0),)
    # With a mark between them it has one of them to take in again.
    marked = measured(*STREAM, faults=faults, trigger=At((2,)))
    assert marked.results(1) == [(999_000, 1_601_500 + 1_000 + 100)]
    assert "served_again" not in marked.run.summary
    assert marked.run.workload.faults == (Fault("kill", 1),)


@pytest.mark.parametrize("when_full", ["block", "drop"])
def test_a_full_worker_holds_the_line_or_sheds(when_full: Literal["block", "drop"]) -> None:
    crowd = [("a", 100), *[("b", 300)] * 5]
    limited = tuple([replace(each, queue_limit=1, when_full=when_full) for each in CLUSTER.workers])
    seen = measured(*crowd, cluster=replace(CLUSTER, workers=limited), flush=False)
    arrived = [event.key for event in seen.run.workload.arrivals]
    waits_us = seen.room.hosts[1].record.waited_us
    if when_full == "drop":
        # One is taken at once and one may wait, and what is on the line counts as waiting.
        assert (arrived, seen.run.summary["shed"]) == (["a", "b"], 4)
        return
    assert arrived == ["a", *["b"] * 5]
    assert "shed" not in seen.run.summary
    # The line is held while one waits at the door: 120 on the way, then 1,000 each.
    assert waits_us == pytest.approx([120 + 1_000 * n for n in range(1, 6)])
    assert seen.room.hosts[1].station.blocked > 0


# ------------------------------------------------------------------------------------ any workflows


def small(seed: int = 1, /, **settings: object) -> TimedRun:
    texts = {"sensors": 10, "rates_hz": "5,2", "seconds": 12, "workers": 3, **settings}
    return from_settings({key: str(value) for key, value in texts.items()}, seed)


def test_placements_change_nothing_but_the_hosts() -> None:
    runs = {way: small(placement=way) for way in PLACEMENTS}
    for word in (Result, Undefined, Rejected):
        assert len({timed.trace.of(word) for timed in runs.values()}) == 1
    assert len({timed.workload.arrivals for timed in runs.values()}) == 1
    assert runs["plan"].trace.of(Rejected)
    hosts = {way: timed.trace.of(Hosted) for way, timed in runs.items()}
    assert {each.worker for each in hosts["literal"]} == {0}
    assert len({each.worker for each in hosts["whole"]}) > 1
    # Policy by-sensor sends a sensor to its hash, even if no script there needs it.
    assert set(hosts["by-unit"]) <= set(hosts["by-sensor"])


@pytest.mark.parametrize("fails", [(), (Fail("worker-1", 31_000, 100),)])
def test_a_micro_batch_has_its_own_tuples_though_later_ones_overtake_its_mark(
    fails: tuple[Fail, ...],
) -> None:
    rows = tuple(Row(n * 1_000, 30_000 + n * 50, "ab"[n % 2], 1.0, n) for n in range(24))
    plan = Plan(
        (Recording(rows),),
        Cluster((Worker(place=Place(0)), Worker(place=Place(1))), Constant(100.0)),
        trigger=At((4, 8, 12, 16, 20)),
        tuning=ScriptTuning("by-sensor"),
        faults=fails,
    )
    both = Workflow("w", (Statement("x", Arithmetic("+", A, B)),))
    config = ScriptConfig((both,), (("a", 3_600_000), ("b", 3_600_000)), 2, lateness_us=4_000)
    model, spark = (simulate(plan, config, 0, machine=each) for each in (Machine, SparkMachine))
    assert spark.trace.of(Result) == model.trace.of(Result)
    assert model.trace.of(Result)
