"""Whole workloads: exact in the end, whatever the order, cuts, redeliveries and crashes."""

import os
import subprocess
import sys
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from model.checking.claims import Outcome
from model.checking.diff import compare
from model.slack import make_system, run
from model.slack.claims import check, judge, over_all
from model.slack.evidence import IDENTITY
from model.vocabulary import Fault, Trace, Workload, task_of
from model.vocabulary.slack import WORDS, Judged, Progress
from model.vocabulary.windows import Correction, Final, Late, Rejected, Result
from model.windows.pipeline import PRODUCER
from tests.model.slack.strategies import cuts, stream_of, workloads

TWO_BATCHES = Workload(
    "slack",
    stream_of((12, 1.0), (25, 2.0), (13, 4.0), (60, 8.0)),
    {"size_us": 10, "slide_us": 10, "control": "fixed", "max_age_us": 30},
    cuts=(2,),
)


def mismatches(left: Trace, right: Trace, words: tuple[type, ...], *ignore: str) -> int:
    return compare(left, right, words, identity=IDENTITY, ignore=ignore).mismatches


def test_a_small_run_by_hand() -> None:
    trace = run(TWO_BATCHES)
    assert trace.producer == PRODUCER
    assert trace.of(Result) == (
        Result(0, 10, "a", 0, 1.0, 1, 0, 25),
        Result(0, 20, "a", 1, 2.0, 1, 0, 60),
        Result(0, 60, "a", 2, 8.0, 1, 0, 80),
    )
    assert trace.of(Late) == (Late(0, 10, "a", 2, 13, 1),)
    assert trace.of(Correction) == (Correction(0, 1, "age", 1, 1),)
    assert trace.of(Progress) == (
        Progress(0, 0, 25, 0, 0, 25, 1.0),
        Progress(0, 1, 60, 12, 0, 60, 1.0),
        Progress(0, 2, 60, 12, 0, 80, 1.0),
    )
    assert [(final.start_us, final.value, final.revision) for final in trace.of(Final)] == [
        (10, 5.0, 1),
        (20, 2.0, 0),
        (60, 8.0, 0),
    ]


def test_without_a_flush_answers_may_be_provisional_or_missing() -> None:
    trace = run(TWO_BATCHES.with_(arrivals=TWO_BATCHES.arrivals[:3], flush=False))
    assert trace.of(Final) == (Final(0, 10, "a", 1.0, 1, 0, False),)


def test_rejected_arrivals_are_in_no_history() -> None:
    arrivals = (*stream_of((12, 1.0)), *stream_of((13, float("nan")), first=1))
    trace = run(Workload("slack", arrivals, {"size_us": 10, "slide_us": 10}))
    assert [rejected.seq for rejected in trace.of(Rejected)] == [1]
    assert [(final.n, final.exact) for final in trace.of(Final)] == [(1, False)]


def test_no_arrivals_make_no_steps() -> None:
    assert len(run(Workload("slack", (), {"size_us": 10, "slide_us": 10}))) == 0


def test_every_task_has_its_own_clock() -> None:
    config = {"size_us": 10, "slide_us": 10, "control": "fixed", "tasks": 2}
    assert [task_of(key, 2) for key in "ab"] == [0, 1]
    trace = run(Workload("slack", stream_of((95, 1.0, "a"), (12, 1.0, "b")), config))
    assert trace.of(Late) == ()
    assert {(progress.task, progress.wm_us) for progress in trace.of(Progress)} == {
        (0, 95),
        (0, 110),
        (1, 12),
        (1, 30),
    }


@given(workloads())
def test_every_claim_holds(workload: Workload) -> None:
    broken = [v for v in check(workload, run(workload)) if v.outcome is Outcome.BROKEN]
    assert not broken


@given(workloads(flush=True))
def test_final_answers_are_the_aggregates_of_the_distinct_tuples(workload: Workload) -> None:
    """Brute force, for sums: every possible start of a window is tried."""
    config = {**workload.config, "aggregate": "sum"}
    size_us, slide_us = config["size_us"], config["slide_us"]
    right: dict[tuple[int, int, str], list[float]] = {}
    for event in {event.source_id: event for event in reversed(workload.arrivals)}.values():
        task = task_of(event.key, config["tasks"])
        key = event.key if config["keyed"] else ""
        for start_us in range(event.event_time_us - size_us + 1, event.event_time_us + 1):
            if start_us % slide_us == 0:
                right.setdefault((task, start_us, key), []).append(event.value)
    finals = run(workload.with_(config=config)).of(Final)
    assert {final[:3]: (final.value, final.n, final.exact) for final in finals} == {
        window: (sum(values), len(values), True) for window, values in right.items()
    }


@given(workloads(), st.data())
def test_other_cuts_change_no_answer(workload: Workload, data: st.DataObject) -> None:
    other = workload.with_(cuts=data.draw(cuts(len(workload.arrivals))))
    left, right = run(workload), run(other)
    assert not mismatches(left, right, (Result, Late, Judged, Rejected), "batch")
    if workload.flush:
        assert not mismatches(left, right, (Final,), "revision")


@given(workloads(flush=True), st.randoms(use_true_random=False))
def test_another_order_changes_no_final_answer(workload: Workload, random: Random) -> None:
    shuffled = list(workload.arrivals)
    random.shuffle(shuffled)
    arrivals = tuple(event._replace(seq=seq) for seq, event in enumerate(shuffled))
    other = workload.with_(arrivals=arrivals)
    assert not mismatches(run(workload), run(other), (Final,), "revision")


@given(workloads(flush=True), st.data())
def test_redeliveries_change_no_final_answer(workload: Workload, data: st.DataObject) -> None:
    again = data.draw(st.lists(st.sampled_from(workload.arrivals), max_size=6))
    other = workload.with_(arrivals=(*workload.arrivals, *again))
    assert not mismatches(run(workload), run(other), (Final,), "revision")


@given(workloads(), st.sets(st.integers(0, 4)))
def test_crashes_change_nothing_at_all(workload: Workload, batches: set[int]) -> None:
    faults = tuple(Fault("kill", batch) for batch in sorted(batches))
    assert run(workload.with_(faults=faults)).digest() == run(workload).digest()


def test_the_interesting_cases_occur_among_drawn_workloads() -> None:
    judgements = []

    @settings(max_examples=200)
    @given(workloads())
    def collect(workload: Workload) -> None:
        judgements.append(judge(workload, make_system()(workload)))

    collect()
    totals = {name: sum(j.guards[name] for j in judgements) for name in judgements[0].guards}
    assert not [name for name, count in totals.items() if not count and "rejected" not in name]
    assert not [v for v in over_all(judgements) if v.outcome is Outcome.BROKEN]


def test_the_digest_does_not_depend_on_the_hash_seed() -> None:
    script = (
        "from model.slack import run; from tests.model.slack.test_run import TWO_BATCHES;"
        "print(run(TWO_BATCHES).digest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert digests == {run(TWO_BATCHES).digest() + "\n"}


def test_every_word_is_identified_by_fields_it_has() -> None:
    trace = run(TWO_BATCHES)
    difference = compare(trace, Trace("nothing", ()), WORDS, identity=IDENTITY)
    assert difference.mismatches == len(trace)
