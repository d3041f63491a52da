"""Timed runs of sensor scripts: worked out by hand, held to the model, the same for a seed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from model.script import make_system as make_reference
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script import (
    Arithmetic,
    Hosted,
    Name,
    Rejected,
    Result,
    Sensor,
    Statement,
    Undefined,
    Union,
    Window,
    Workflow,
)
from sim.kernel.distributions import Constant
from sim.kernel.link import Tier, Tiers
from sim.script import Run, from_settings, make_system
from sim.script.crew import Crew
from sim.script.figures import plot_run
from sim.script.placements import PLACEMENTS
from sim.script.scenarios import DISORDERS
from sim.script.timed import Room, Told
from sim.script.workflows import SETS

SCRIPT = "from tests.sim.script.test_timed import small; print(small().digest)"
SECOND_US = 1_000_000


def small(seed: int = 1, **settings: object) -> Run:
    texts = {"sensors": 10, "rates_hz": "5,2", "seconds": 12, "workers": 3, **settings}
    return from_settings({key: str(value) for key, value in texts.items()}, seed)


# ------------------------------------------------------------------------------------- by hand

A, B = Sensor("a"), Sensor("b")
CREW = Crew(
    tiers=(1,),
    service=Constant(1_000.0),
    result_us=100.0,
    tuple_bytes=125,
    result_bytes=250,
    table=Tiers(node=Tier(20.0, 10.0)),
)
"""A tuple is 100 us on a line and a result 200, and 20 more to arrive."""


def measured(*events: tuple[str, int], flush: bool = True) -> Workload:
    """Two windows, which LPT gives to two workers, and their difference."""
    said = (
        Statement("x", Window("max", A, 1_000, 1_000)),
        Statement("y", Window("max", B, 1_000, 1_000)),
        Statement("z", Arithmetic("-", Name("x"), Name("y"))),
    )
    sensors = (("a", 7_200), ("b", 3_600))
    config = ScriptConfig((Workflow("w", said),), sensors, 2, 0, 100)
    arrivals = tuple(
        Event(seq, seq, sensor, at_ms * 1_000, float(seq), at_ms * 1_000)
        for seq, (sensor, at_ms) in enumerate(events)
    )
    return Workload("script", arrivals, config.to_json(), flush=flush)


def test_a_result_takes_the_way_the_work_and_the_line_to_the_other_worker() -> None:
    workload = measured(("a", 100), ("b", 300), ("a", 1_200), ("b", 1_600))
    room = Room(workload, CREW, 0, "all-split")
    x, y, z = (output.node for output in room.graph.outputs)
    assert [room.placement.worker[each] for each in (x, y, z)] == [0, 1, 0]
    room.run()
    stamp_us = 999_000
    # The tuple that passes the end: 100 on the line, 20 to arrive, 1,000 of work, 100 for a result.
    own_us = 1_200_000 + 100 + 20 + 1_000 + 100
    other_us = 1_600_000 + 100 + 20 + 1_000 + 100
    # On to the other worker: 200 on the line, 20 to arrive, 100 to be taken; then the difference.
    both_us = other_us + 200 + 20 + 100 + 100
    found = [each for each in room.told if not each.is_last]
    expected = [
        Told(x, stamp_us, own_us, False),
        Told(y, stamp_us, other_us, False),
        Told(z, stamp_us, both_us, False),
    ]
    assert found == expected
    sent = [message for message in room.messages if message.node == y]
    assert (sent[0].sender, sent[0].reader, sent[0].sent_us) == (1, 0, other_us)


def test_without_an_end_nobody_tells_of_what_is_not_known() -> None:
    workload = measured(("a", 100), ("b", 300), ("a", 1_200), ("b", 1_600), flush=False)
    room = Room(workload, CREW, 0, "all-split")
    room.run()
    assert not any(each.is_last for each in room.told)
    assert [(each.node, each.stamp_us) for each in room.told] == [
        (output.node, 999_000) for output in room.graph.outputs
    ]
    assert make_system()(workload).of(Result) == make_reference()(workload).of(Result)


def test_an_empty_window_is_a_notice() -> None:
    workload = measured(("a", 100), ("b", 300), ("a", 1_200), ("b", 2_600), ("a", 2_700))
    room = Room(workload, CREW, 0, "all-split")
    room.run()
    y = room.graph.outputs[1].node
    stamps = [each.stamp_us for each in room.messages if each.node == y]
    # At 2,600 both ends are passed, at the end the third one: a result each, none for the second.
    assert stamps == [999_000, 2_999_000]
    workload = measured(("a", 100), ("b", 1_300), ("a", 1_200), ("b", 2_600), ("a", 2_700))
    room = Room(workload, CREW, 0, "all-split")
    room.run()
    # Of the first window there is nothing but the notice that it is over.
    assert [each.stamp_us for each in room.messages if each.node == y] == [
        None,
        1_999_000,
        2_999_000,
    ]


# ------------------------------------------------------------------------------ any workflows


def test_a_seed_says_everything() -> None:
    assert small().digest == small().digest
    assert small().digest != small(2).digest
    root = Path(__file__).parents[3]
    for hash_seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            check=True,
            cwd=root,
            env=environment,
            text=True,
            timeout=120,
        )
        assert run.stdout.strip() == small().digest


@pytest.mark.parametrize("scenario", SETS)
@pytest.mark.parametrize("disorder", DISORDERS)
def test_the_model_records_the_same(scenario: str, disorder: str) -> None:
    timed = small(scenario=scenario, disorder=disorder)
    expected = make_reference()(timed.workload)
    assert list(timed.trace.steps()) == list(expected.steps())
    assert list(make_system()(timed.workload).steps()) == list(expected.steps())
    assert timed.workload.cuts


def test_placements_change_who_is_sent_what_and_nothing_else() -> None:
    runs = {way: small(placement=way) for way in PLACEMENTS}
    for word in (Result, Undefined, Rejected):
        assert len({timed.trace.of(word) for timed in runs.values()}) == 1
    assert len({timed.workload.arrivals for timed in runs.values()}) == 1
    assert runs["plan"].trace.of(Rejected)
    hosts = {way: timed.trace.of(Hosted) for way, timed in runs.items()}
    assert {each.worker for each in hosts["literal"]} == {0}
    assert len({each.worker for each in hosts["whole"]}) > 1
    # Sensors go to their hash first, whoever needs them.
    assert set(hosts["by-unit"]) <= set(hosts["by-sensor"])


def test_a_slow_crew_changes_times_alone() -> None:
    fast, slow = small(), small(speeds="1,0.02")
    assert list(fast.trace.steps()) == list(slow.trace.steps())
    assert fast.summary["tuples_sent"] == slow.summary["tuples_sent"]
    late = float(slow.summary["mean_result_latency_us"])
    assert late > 5 * float(fast.summary["mean_result_latency_us"])


def test_every_worker_has_the_tuples_of_a_sensor_in_order() -> None:
    timed = small(scenario="drawn", lateness_us=0)
    room = Room(timed.workload, CREW, 0, "by-sensor")
    forwarded = 0
    for worker, flow in enumerate(room.flows):
        assert (np.diff(flow.due_us) >= 0).all()
        for sensor in room.placement.hosts[worker]:
            own = flow.tuples[room.sent.sensors[flow.tuples] == sensor]
            assert (own == np.flatnonzero(room.sent.sensors == sensor)).all()
        forwarded += len(room.placement.hosts[worker])
    assert forwarded > len(room.config.asked_for)


def test_a_watermark_that_follows_the_disorder_waits_less_and_lets_less_in() -> None:
    runs = [
        small(lateness_us=400_000, disorder="gaps-and-bursts", watermark=watermark)
        for watermark in ("fixed", "scaled", "disorder")
    ]
    late = [int(each.summary["late"]) for each in runs]
    waited = [float(each.summary["mean_result_latency_us"]) for each in runs]
    assert late == sorted(late)
    assert late[0] < late[2]
    assert waited[2] < waited[0]
    for each in runs:
        assert each.trace.of(Rejected) == make_reference()(each.workload).of(Rejected)


def test_without_lateness_only_the_end_tells() -> None:
    timed = small(lateness_us="none")
    assert timed.summary["late"] == 0
    assert timed.summary["results"]
    assert "mean_result_latency_us" not in timed.summary
    assert np.isnan(timed.series["latency_us"]).all()


@pytest.mark.parametrize("flush", [True, False])
def test_nothing_at_all_is_a_run(flush: bool) -> None:
    said = Statement("x", Union((A, B)))
    config = ScriptConfig((Workflow("w", (said,)),), (("a", 1), ("b", 1)), 2)
    workload = Workload("script", (), config.to_json(), flush=flush)
    assert not len(make_system()(workload))


# ---------------------------------------------------------------------------------- settings, plots


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"scenario": "brigde"}, "did you mean 'bridge'?"),
        ({"placement": "litteral"}, "did you mean 'literal'?"),
        ({"disorder": "storm"}, "disorder is 'storm'"),
        ({"shared": "11", "scenario": "shared"}, "shared is 11; it must be 0 to 10"),
        ({"sensors": "0"}, "sensors is 0"),
        ({"seconds": "0"}, "seconds is 0"),
        ({"rates_hz": "0"}, "tuples of '8MD1-0' in an hour is 0"),
        ({"loss": "2"}, "loss is '2'"),
        ({"workers": "0"}, "workers is 0"),
        ({"workflows": "0", "scenario": "drawn"}, "workflows is 0"),
        ({"together": "0", "scenario": "drawn"}, "together is 0"),
        ({"watermark": "literal"}, "watermark is 'literal'"),
        ({"watermark": "scaled", "lateness_us": "none"}, "lateness_us is None"),
        ({"cluster": "0"}, "cluster is 0"),
        ({"lateness_us": "soon"}, "lateness_us is 'soon'"),
        ({"speeds": "1,fast"}, "speeds is 'fast'"),
        ({"tiers": "near"}, "tiers is 'near'"),
        ({"sensor_tier": "far"}, "sensor_tier is 'far'"),
        ({"service_us": "0"}, "service_us is '0'"),
        ({"result_us": "-1"}, "result_us is -1.0"),
        ({"tuple_bytes": "0"}, "tuple_bytes is 0"),
        ({"sensor": "3"}, "did you mean 'sensors'?"),
    ],
)
def test_a_bad_setting_is_named(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        from_settings({"sensors": "10", **settings}, 1)


def test_a_run_is_drawn_the_same_every_time(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        plot_run(small(), tmp_path / name)
    text = (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "two.svg").read_text(encoding="utf-8")
    for label in ("gaps-and-bursts, simulated", "3 workers, placement plan", "most", "busiest"):
        assert label in text
