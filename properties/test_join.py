"""Room ``join``: every worker's steps are a behaviour of the protocol, on any network."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from model.checking.claims import Outcome
from model.checking.explorer import explore
from model.join import control as controls
from model.join.claims import CLAIMS, evidence_of
from model.join.replay import validate_recording
from model.join.run import run as model_run
from model.join.scopes import SCOPES, machine_of
from model.join.state_claims import claims_of
from model.vocabulary import JoinConfig, Trace, Workload
from model.vocabulary.join import END_US, PROTOCOL, Decision, Match, Rejected
from model.vocabulary.join_load import LoadRules, LoadState, Measured
from properties.agreement import Agreement, TestT, put_to_the_test
from properties.promised import Reached, promised
from sim.join import ChainRun, simulate
from sim.join.machine import MachineOf
from sim.join.model_chain import ModelChain
from sim.kernel.link import Tiers
from spark_impl.join import control as spark
from spark_impl.join import index, run_in_process, side
from spark_impl.join.in_process import Network
from straggler.rooms.join.spark_machine import SparkMachine
from straggler.strategies.columns import COLUMNED, count_columns
from straggler.strategies.join import STRUCK, cases, recordings_on_chains
from straggler.strategies.load_curves import AT_THRESHOLDS, Course, courses
from straggler.strategies.networks import SEEDS
from straggler.strategies.telling_chains import OPEN, STATES, TELLING, in_time
from straggler.strategies.timed_cases import TimedCase
from straggler.strategies.troubled import all_of, chains_everywhere

NETWORKS = (
    Network(),
    Network(unforced=0.3),
    Network(ordered=False, unforced=0.3),
    Network(twice=0.2, unforced=0.3),
)
MET = (
    "arrivals late by a floor",
    "pairs outside of the epochs of a query",
    "shed arrivals",
    "tuples held when workers came or went",
    "protocol steps of the model",
)
"""Cases that a chain has to meet."""
TOLD = (*TELLING.values(), OPEN)
ROOM_FOR = st.sampled_from([1, side.ROWS_MIN])
"""Fewest rows of an array, or of a run of an index: with one, they grow with copies on the way."""


def tell(test: TestT) -> TestT:
    """Decorate a property of chains: it also gets the telling ones, on every network."""
    for case, network in product(TOLD, NETWORKS):
        test = example(case=case, network=network, seed=0, room=1)(test)
    return test


@promised(*put_to_the_test(CLAIMS), *MET, *COLUMNED, examples=40)
@tell
@given(case=cases(), network=st.sampled_from(NETWORKS), seed=SEEDS, room=ROOM_FOR)
def test_spark_s_workers_follow_the_protocol(
    reached: Reached, case: Workload, network: Network, seed: int, room: int
) -> None:
    with patch.object(side, "ROWS_MIN", room), patch.object(index, "SHORT", room):
        trace = run_in_process(case, network, seed)
    Agreement("join", reached).keeps_claims(case, trace)
    seen = evidence_of(case, trace, counts_pairs=False)
    assert not seen.early
    reached.add(count_columns(seen))
    if network == NETWORKS[0] or case not in TOLD:  # the model has no network
        modelled = Reached()
        Agreement("join", modelled).keeps_claims(case, model_run(case))
        reached.add({"protocol steps of the model": modelled.counts["protocol steps"]})
    for turn in range(2):
        spoilt = spoil(trace, Random(seed + turn))
        assert validate_recording(case, spoilt).outcome is not Outcome.HOLDS, spoilt


@pytest.mark.parametrize("name", STATES)
def test_every_behaviour_of_few_tuples_keeps_the_promises(name: str) -> None:
    scope = SCOPES[name]
    scope = replace(scope, r_us=scope.r_us[-2:], s_us=scope.s_us[-1:])
    found = explore(machine_of(scope), claims_of(scope))
    assert {each.outcome for each in found.verdicts} == {Outcome.HOLDS}
    assert (found.unique_states, found.transitions) == STATES[name]


def spoil(trace: Trace, random: Random) -> Trace:
    """Return a recording with one number of a step raised; a time, above all watermarks."""
    steps: list[Any] = list(trace.steps())
    at = random.choice([at for at, step in enumerate(steps) if isinstance(step, PROTOCOL)])
    name = random.choice([name for name in steps[at]._fields if name != "stream"])
    number = END_US if name.endswith("_us") else getattr(steps[at], name)
    steps[at] = steps[at]._replace(**{name: number + 1})
    return Trace(trace.producer, steps)


def run_is_right(timed: ChainRun, reached: Reached) -> None:
    """Assert that the claims hold on a timed run, and that the model has the same results."""
    Agreement("join", reached).keeps_claims(timed.workload, timed.trace)
    model = model_run(timed.workload.with_(flush=True))
    assert model.of(Rejected) == timed.trace.of(Rejected)
    found, expected = (Counter(each[:3] for each in t.of(Match)) for t in (timed.trace, model))
    assert found <= expected
    assert found == expected or not timed.workload.flush
    reached.add({name: int(timed.summary.get(name, 0)) for name in FIGURES})
    reached.add(Counter([*_resized(timed), *(fault.kind for fault in timed.plan.faults)]))
    if "blocks" in timed.summary:
        places = [
            timed.plan.cluster.worker(n).place for n in range(timed.workload.config["workers"])
        ]
        reached.add(Counter(f"tier {timed.plan.way(*each)}" for each in pairwise(places)))


def _resized(timed: ChainRun) -> Iterator[str]:
    """Yield whether workers came or went, for each change of their number."""
    for change in str(timed.summary["resized"]).split(", "):
        if change != "no":
            before, after = map(int, change.split(" to "))
            yield "workers came" if before < after else "workers went"


KINDS = ("pause", "slow", "fail", "congest", "lose", "replay")
TIERS = tuple(f"tier {each}" for each in (None, *Tiers()))
MACHINES: Sequence[MachineOf] = (ModelChain, SparkMachine)
TURNS = st.integers(0, 1)
"""Machine of the first chain of an example; the others have one and the other in turn."""
TROUBLES = ("arrivals_taken_again", "blocks", "sent_again", "came_again")
"""Trouble between workers that timed runs have to meet."""
FIGURES = ("shed", "shed_at_log", "failures", *TROUBLES)


def runs_are_right(chains: Sequence[TimedCase[JoinConfig]], turn: int, reached: Reached) -> None:
    """Assert that runs find every pair once, on the model's workers and on Spark's in turn."""
    for number, (config, (plan, seed)) in enumerate(chains, turn):
        machine = MACHINES[number % len(MACHINES)]
        run_is_right(simulate(plan, config, seed, machine=machine), reached)


@promised(*TROUBLES, *KINDS, *TIERS, "workers came", "workers went", examples=6)
@example(chains=[in_time(case) for case in TELLING.values()], turn=0)
@example(chains=[in_time(case) for case in TELLING.values()], turn=1)
@given(chains=all_of(STRUCK, recordings_on_chains), turn=TURNS)
def test_a_recording_finds_every_pair_once_whatever_the_timing(
    reached: Reached, chains: Sequence[TimedCase[JoinConfig]], turn: int
) -> None:
    runs_are_right(chains, turn, reached)


@promised("shed", "shed_at_log", "failures", "duplicate", examples=5)
@given(chains=chains_everywhere(), turn=TURNS)
def test_a_cluster_finds_every_pair_once_whatever_the_timing(
    reached: Reached, chains: Sequence[TimedCase[JoinConfig]], turn: int
) -> None:
    runs_are_right(chains, turn, reached)


# ------------------------------------------------------------------------------- both controllers

Decide = Callable[[LoadRules, LoadState, Measured], tuple[LoadState, Decision]]
Log = Sequence[tuple[LoadState, Decision]]
"""State and decision after each measurement."""
CASES: Mapping[str, Callable[[LoadRules, LoadState, LoadState, Decision], bool]] = {
    "more workers": lambda _rules, before, after, _decision: after.workers > before.workers,
    "fewer workers": lambda _rules, before, after, _decision: after.workers < before.workers,
    "moments too high or too low, not yet for long": lambda _rules, _before, after, _decision: (
        after.high_since_us is not None or after.low_since_us is not None
    ),
    "shares that are shed": lambda _rules, _before, _after, decision: decision.share > 0,
    "shares that are shed at or below tau1": lambda rules, _before, after, decision: (
        decision.share > 0 and after.smoothed <= rules.tau1
    ),
    "smaller blocks": lambda rules, _before, _after, new: new.block_size < rules.block_size,
}
"""Cases of a controller, by the state before a measurement and what follows from it."""


def log_of(decide: Decide, course: Course) -> Log:
    """Return the log of a controller, which follows its own states."""
    state, steps = controls.start(course.rules, course.workers), []
    for measured in course.measured:
        state, decision = decide(course.rules, state, measured)
        steps.append((state, decision))
    return steps


@promised(*CASES, "no", "linear", "quadratic", examples=120)
@example(course=AT_THRESHOLDS)
@given(course=courses())
def test_both_controllers_decide_the_same_to_the_last_bit(reached: Reached, course: Course) -> None:
    first = controls.start(course.rules, course.workers)
    assert spark.begin(course.rules, course.workers) == first
    log = log_of(spark.decide, course)
    assert log == log_of(controls.decide, course)
    states = [first, *(state for state, _ in log)]
    for name, is_case in CASES.items():
        steps = zip(states, log, strict=False)
        reached.add({name: sum(is_case(course.rules, one, *step) for one, step in steps)})
    assert course.rules.shed != "no" or not any(decision.share for _, decision in log)
    reached.add({course.rules.shed: 1})
