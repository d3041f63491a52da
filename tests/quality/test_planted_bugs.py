"""Every claim of every room is broken by a planted bug: by day in the model, at night in all.

Bugs of the model are planted in timed runs as well, and those of Spark's operators in Spark jobs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import pytest
from pyspark.sql import SparkSession

from model.checking.claims import Recording
from model.grouping.machine import Machine
from model.grouping.variants import AGREEMENT
from model.join.state_claims import LOST, STUCK
from model.vocabulary import Trace, Workload
from properties.forks import first_in_forks
from sim.join.room import TIMED_ROOM
from sim.script.worker import compile_scripts
from spark_impl.join.in_process import Network
from spark_impl.join.in_process import run_in_process as run_chain_in_process
from straggler.rooms import find_room, room_names
from tests.quality.claims import assert_breaks, broken, claim_sets, claims_of, reference, shown
from tests.quality.model_bugs import MODEL, TIMED
from tests.quality.operator_bugs import JOBS, ONLY_JOBS, OPERATORS, keep
from tests.quality.planting import Planted, Run
from tests.quality.test_load_bugs import CLAIMS as OF_LOAD

CASES = [(room, claim) for room, bugs in MODEL.items() for claim in bugs]
TROUBLED = Network(ordered=False, twice=0.2)
"""Messages of a chain overtake each other, and some come twice."""


@pytest.mark.parametrize("room", room_names())
def test_every_claim_has_a_planted_bug(room: str) -> None:
    elsewhere = OF_LOAD.get(room, frozenset())
    assert {*MODEL[room], *elsewhere} == set(claims_of(room))
    assert not elsewhere & set(MODEL[room])


@pytest.mark.parametrize(("room", "claim"), CASES)
def test_a_bug_of_the_model_breaks_its_claim(room: str, claim: str) -> None:
    bug = MODEL[room][claim]
    if isinstance(bug, Planted):
        assert_breaks(room, claim, reference(room), bug)
        return
    variant = find_room(room).explorer.variants[bug]
    assert claim in broken(room, variant.example, variant.make_system()(variant.example))


@pytest.mark.parametrize(
    ("room", "name"),
    [(room, name) for room in room_names() for name in find_room(room).explorer.variants],
)
def test_a_variant_breaks_its_promise_and_the_right_rules_keep_it(room: str, name: str) -> None:
    variant: Any = find_room(room).explorer.variants[name]
    example = variant.example
    right, wrong = reference(room)(example), variant.make_system()(example)
    assert broken(room, example, right) == set()
    if variant.promise == AGREEMENT:  # no claim notices it
        assert find_room(room).compare(example, right, wrong, find_room(room).step_types).sentences
        return
    # A chain that is stuck owes pairs, which is all that can be seen in what came out of it.
    promise = LOST if variant.promise == STUCK else variant.promise
    assert promise in broken(room, example, wrong)


# ------------------------------------------------------------------------- at night: in timed runs


def timed(room: str, workload: Workload) -> Trace:
    """Return the trace of a timed run; that of a chain has the steps of the protocol."""
    replay = TIMED_ROOM.replay if room == "join" else find_room(room).replay
    return replay(workload).trace


@contextmanager
def by_rules(room: str, rules: Any) -> Iterator[None]:
    """Let timed runs go by other rules of the model."""
    if room == "grouping":
        senders = Planted(Machine.__init__, lambda right, self, config: right(self, config, rules))
        with senders.in_force():
            yield
    elif room == "script":
        scripts = Planted(compile_scripts, lambda right, config, way: right(config, way, rules))
        with scripts.in_force():
            yield
    else:
        with pytest.MonkeyPatch.context() as monkeypatch:
            wired = import_module(f"sim.{room}.room")
            monkeypatch.setattr(wired, "MODEL", replace(wired.MODEL, rules=rules))
            if hasattr(wired, "RULES"):  # the operators upstream follow them
                monkeypatch.setattr(wired, "RULES", rules)
            yield


@pytest.mark.long
@pytest.mark.parametrize(("room", "claim"), CASES)
def test_a_bug_breaks_its_claim_in_a_timed_run(room: str, claim: str) -> None:
    bug = TIMED.get(room, {}).get(claim) or MODEL[room][claim]
    if isinstance(bug, Planted):
        assert_breaks(room, claim, partial(timed, room), bug)
        return
    variant: Any = find_room(room).explorer.variants[bug]
    example = variant.example
    assert broken(room, example, timed(room, example)) == set()
    with by_rules(room, variant.rules):
        wrong = timed(room, example)
    assert claim in broken(room, example, wrong)


# ------------------------------------------------------- at night: in Spark's operators and in jobs


@pytest.mark.long
@pytest.mark.parametrize(
    ("room", "claim"), [(room, claim) for room, bugs in OPERATORS.items() for claim in bugs]
)
def test_a_bug_of_an_operator_breaks_its_claim(room: str, claim: str) -> None:
    assert_breaks(room, claim, in_process(room), OPERATORS[room][claim], recorded(room))


def in_process(room: str) -> Run:
    if room == "join":
        return partial(run_chain_in_process, network=TROUBLED)
    found = find_room(room).in_process
    assert found is not None
    return found


def recorded(room: str) -> Recording:
    """Return what operators record in process."""
    found = find_room(room)
    return Recording(frozenset(found.step_types).difference(found.in_process_step_types))


def test_claims_that_no_operator_can_break_need_steps_that_none_records() -> None:
    for room, bugs in OPERATORS.items():
        sets = claim_sets(room)
        needs = {claim.name: claim.needs for each in sets for claim in each.claims}
        for claim in set(MODEL[room]).difference(bugs):
            words = {word for group in needs[claim] for word in group}
            assert words.difference(find_room(room).in_process_step_types), (room, claim)


# ----------------------------------------------------------------------- at night: in jobs of Spark


@pytest.mark.long
@pytest.mark.parametrize(
    ("room", "claim"), [(room, claim) for room, bugs in JOBS.items() for claim in bugs]
)
def test_a_bug_of_a_job_breaks_its_claim(spark: SparkSession, room: str, claim: str) -> None:
    if not str(spark.sparkContext.master).startswith("local"):
        pytest.skip("workers of a cluster are no forks of ours, and would make no mistake")
    workload = find_workload(room, claim)
    with (
        JOBS[room][claim].in_force(),
        first_in_forks(spark.sparkContext.environment, partial(keep, room, claim)),
    ):
        wrong = find_room(room).spark()(workload)
    assert claim in broken(room, workload, wrong)
    assert broken(room, workload, find_room(room).spark()(workload)) == set()


def find_workload(room: str, claim: str) -> Workload:
    """Return a workload on which the claim can break."""
    if claim not in ONLY_JOBS.get(room, {}):
        return next(shown(room, claim, in_process(room), JOBS[room][claim], recorded(room)))
    bug = MODEL[room][claim]
    if isinstance(bug, str):
        return find_room(room).explorer.variants[bug].example
    return next(shown(room, claim, reference(room), bug))
