"""The timed room keeps the promises of docs/script.md, and sends what placements predict.

What rates say exactly is compared exactly; what is random is held to an interval, which is wrong
with a stated probability.
"""

from collections import Counter
from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.claims import Outcome
from model.script import make_system
from model.script.claims import CASES, judge, over_all
from model.script.placement import load_cap
from model.script.variants import VARIANTS
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script import (
    Arithmetic,
    Hosted,
    Rejected,
    Result,
    Sensor,
    Statement,
    Undefined,
    Window,
    Workflow,
)
from properties import packs
from properties.judge import broken_sentences
from properties.script.strategies import SENSORS, cases
from sim.kernel.distributions import Constant, Distribution, Exponential
from sim.kernel.log import simulate_arrivals
from sim.script.crew import Crew
from sim.script.placements import PLACEMENTS, PLAN
from sim.script.run import trace_of
from sim.script.scenarios import DISORDERS, HOUR_US
from sim.script.settings import given as given_settings
from sim.script.timed import Room
from sim.script.workflows import SETS
from sim.statistics import clopper_pearson

RUNS_FOR_GUARDS = 100
FAILURE = 1e-6
"""Of an interval."""
SERVICES: st.SearchStrategy[Distribution] = st.sampled_from([Constant(500.0), Exponential(5_000.0)])


# ------------------------------------------------------------------------------------- any timing


class TimedCase(NamedTuple):
    """A workload, who computes it, and by which placement."""

    workload: Workload
    crew: Crew
    way: str

    def room(self) -> Room:
        """The run, made."""
        start_us = self.workload.arrivals[0].arrival_us if self.workload.arrivals else 0
        room = Room(self.workload, self.crew, start_us, self.way)
        room.run()
        return room


_A = Sensor(SENSORS[0])
_ALWAYS_ZERO = Arithmetic("-", _A, _A)
_UNDEFINED = Statement("x", Arithmetic("/", _A, _ALWAYS_ZERO))
_AT_EDGES = Statement("y", Window("max", _A, 1_997, 997))
RARE = Workload(
    "script",
    (Event(0, 0, SENSORS[0], 0, 1.0, 0),),
    ScriptConfig((Workflow("w", (_UNDEFINED, _AT_EDGES)),), ((SENSORS[0], 3_600_000),)).to_json(),
)
"""A division by zero and slices between edges, which few of those that are drawn have."""
DISORDERED = VARIANTS["late_ones_unseen"].example
"""A watermark by disorder that somebody meets, and somebody does not."""


@st.composite
def timed_cases(draw: st.DrawFn) -> TimedCase:
    """Workers near and far, fast and slow, and every placement."""
    crew = Crew(
        speeds=draw(st.sampled_from([(1.0,), (1.0, 0.1), (3.0, 0.2, 1.0)])),
        tiers=draw(st.sampled_from([(0,), (1, 3), (2, 0, 1)])),
        service=draw(SERVICES),
        result_us=draw(st.sampled_from([0.0, 2_000.0])),
    )
    return TimedCase(draw(cases()), crew, draw(st.sampled_from(sorted(PLACEMENTS))))


@given(case=timed_cases())
def test_no_claim_is_broken_and_the_model_records_the_same(case: TimedCase) -> None:
    trace = trace_of(case.room())
    expected = make_system()(case.workload)
    # Whoever computes it, and whenever.
    for word in (Result, Undefined, Rejected):
        assert trace.of(word) == expected.of(word)
    if case.way == PLAN:
        assert trace.of(Hosted) == expected.of(Hosted)
        broken = broken_sentences(judge(case.workload, trace).verdicts)
        assert not broken, "\n".join(broken)


@given(case=timed_cases())
def test_what_is_sent_is_what_came_and_what_was_computed(case: TimedCase) -> None:
    room = case.room()
    graph, placed = room.graph, room.placement
    came = Counter(event.key for event in case.workload.arrivals)
    for worker, flow in enumerate(room.flows):
        hosted = {graph.nodes[each].sensor for each in placed.hosts[worker]}
        assert len(flow.tuples) == sum(came[sensor] for sensor in hosted)
    computed = Counter(each.node for each in room.told)
    assert computed == Counter(
        {number: len(room.known()[number].points) for number in graph.computed}
    )
    read = {
        (each, placed.worker[number])
        for number in graph.computed
        for each in graph.streams(number)
        if each in placed.worker and placed.worker[each] != placed.worker[number]
    }
    sent = Counter((each.node, each.reader) for each in room.messages if each.stamp_us is not None)
    assert sent == Counter({(node, reader): computed[node] for node, reader in read})


def test_timed_runs_put_every_claim_to_the_test(seed: int) -> None:
    drawn = [TimedCase(each, Crew(), PLAN) for each in (RARE, DISORDERED)]
    drawn += packs.collect(timed_cases(), RUNS_FOR_GUARDS, seed)
    rooms = [case._replace(way=PLAN).room() for case in drawn]
    evidence = [judge(room.workload, trace_of(room)) for room in rooms]
    for verdict in over_all(evidence):
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.sentence, verdict.witness)
    for guard in CASES:
        assert sum(each.guards[guard] for each in evidence), f"there were no {guard}"
    messages = [message for room in rooms for message in room.messages]
    assert any(each.stamp_us is None for each in messages), "there was no notice"
    assert sum(each.stamp_us is not None for each in messages) > 20, "few results were sent"
    assert sum(not told.is_last for room in rooms for told in room.told) > 100, "few came early"
    late_us = [
        server.ended_us[at] - flow.due_us[at] - room.work_us[flow.tuples[at]] / room.crew.speed(n)
        for room in rooms
        for n, (server, flow) in enumerate(zip(room.servers, room.flows, strict=True))
        for at in range(len(flow.tuples))
    ]
    assert sum(each > 1_000 for each in late_us) > 100, "few tuples had to wait"


# ------------------------------------------------------------------------------ what is predicted

SETTINGS = {"sensors": "10", "rates_hz": "10,5", "seconds": "20", "cap_percent": "110"}


class Counted(NamedTuple):
    """A run of named settings."""

    room: Room
    hours: Fraction
    end_us: int

    def results(self) -> Counter[int]:
        """Results within the period sent to other workers, by node."""
        return Counter(
            each.node
            for each in self.room.messages
            if each.stamp_us is not None and each.stamp_us < self.end_us
        )


def counted(seed: int, **settings: object) -> Counted:
    texts = {**SETTINGS, **{key: str(value) for key, value in settings.items()}}
    asked = given_settings(texts, seed)
    events = simulate_arrivals(asked.plan, seed).events
    workload = Workload("script", events, asked.config.to_json(), seed=seed)
    room = Room(workload, asked.crew, asked.plan.epoch_us, asked.placement)
    room.run()
    return Counted(room, Fraction(asked.period_us, HOUR_US), asked.plan.epoch_us + asked.period_us)


@pytest.mark.parametrize("way", PLACEMENTS)
@pytest.mark.parametrize("scenario", SETS)
def test_what_is_sent_is_what_rates_say(seed: int, scenario: str, way: str) -> None:
    # Sensors keep to their rates, and what delays them changes nothing.
    timed = counted(seed, scenario=scenario, placement=way, disorder="bursts")
    placed, graph = timed.room.placement, timed.room.graph
    assert [len(flow.tuples) for flow in timed.room.flows] == [
        load * timed.hours for load in placed.loads
    ]
    sent = timed.results()
    windows, others = Fraction(), Fraction()
    for number, times in sent.items():
        readers = len({each.reader for each in timed.room.messages if each.node == number})
        predicted = readers * graph.per_hour[number] * timed.hours
        # A window has a result each slide; an operation at most one whenever an input has.
        if graph.nodes[number].span is None:
            assert times <= predicted
            others += times
        else:
            assert times == predicted
            windows += times
    if scenario != "shared" and way in ("all-split", "by-unit", "by-sensor"):
        assert windows, "no result of a window was sent"
    if not others:
        assert sum(sent.values()) == placed.derived * timed.hours


def test_gaps_and_losses_send_less(seed: int) -> None:
    loss = 0.2
    without = counted(seed, seconds=60, disorder="jitter")
    timed = counted(seed, seconds=60, disorder="jitter", loss=loss)
    dropped = counted(seed, seconds=60, disorder="gaps", loss=loss)
    sent = len(without.room.workload.arrivals)
    arrived = len(timed.room.workload.arrivals)
    interval = clopper_pearson(sent - arrived, sent, confidence=1 - FAILURE)
    assert interval.contains(loss), f"{interval} (failure {FAILURE:g})"
    assert interval.half_width < 0.05
    # A third of the sensors for a sixth of the time, of which a fifth is lost anyway.
    assert len(dropped.room.workload.arrivals) < arrived
    for each in (timed, dropped):
        loads = [len(flow.tuples) for flow in each.room.flows]
        predicted = [load * each.hours for load in each.room.placement.loads]
        assert all(load < most for load, most in zip(loads, predicted, strict=True) if most)


@given(seed=st.integers(0, 10_000), n=st.integers(2, 5), scenario=st.sampled_from(sorted(SETS)))
def test_what_is_taken_sends_no_more_than_the_baseline_within_the_cap(
    seed: int, n: int, scenario: str
) -> None:
    settings = {"scenario": scenario, "workers": n, "disorder": "calm", "seconds": 2}
    taken, baseline = (counted(seed, placement=way, **settings) for way in (PLAN, "by-sensor"))
    config: ScriptConfig = taken.room.config
    cap = load_cap(taken.room.graph, n, config.cap_percent) * taken.hours
    loads = [[len(flow.tuples) for flow in each.room.flows] for each in (taken, baseline)]
    if max(loads[1]) <= cap:
        assert max(loads[0]) <= cap
        sent = [sum(each.results().values()) for each in (taken, baseline)]
        assert sum(loads[0]) + sent[0] <= sum(loads[1]) + sent[1]
    # The same tuples go to somebody, whoever that is.
    assert sum(loads[0]) >= len(taken.room.sent.sensors)


def test_every_disorder_lets_the_model_reject_something(seed: int) -> None:
    late = {
        disorder: len(counted(seed, disorder=disorder, lateness_us=50_000).room.intake.rejected)
        for disorder in DISORDERS
    }
    assert late.pop("calm") == 0
    assert min(late.values()) > 0, late
