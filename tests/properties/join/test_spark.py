"""Chains on Spark against the reference: barrier stages, processes, real connections.

Every claim is checked on what they wrote, and what their workers recorded is a behaviour of the
protocol.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from model.checking.claims import Outcome
from model.join import run
from model.join.claims import CASES, judge, over_all
from model.join.replay import validate_recording
from model.vocabulary import Fault, JoinConfig, Trace, Workload
from model.vocabulary.join import Forward, Quiet, Receive, Rejected
from model.vocabulary.trace import Step
from properties import profiles
from properties.chain_workloads import chains, long_case
from spark_impl.join import run_workloads
from spark_impl.join.chain import Chain
from spark_impl.join.matching import FreePredicate, Tuples
from spark_impl.join.system import read_trace, rows_of
from spark_impl.join.worker import Worker
from spark_impl.runtime.arrays import Bools
from straggler.judging.judge import broken_sentences
from straggler.strategies.examples import collect
from straggler.strategies.join import SCALE_US, cases
from tests.properties.join.test_model import results

FEW = 8
"""Not every interesting case occurs in so few chains."""
FAULTS = (Fault("restart", 0), Fault("kill", 1))
RUNS = 5
"""Most runs until a mistake shows: on a busy machine, blocks of a run may never cross."""


def test_chains_on_spark_keep_every_promise(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    given = [*chains(profiles.effort().chains, seed), long_case(4, seed).with_(faults=FAULTS)]
    given.append(silent_case(seed))
    drawn = [case.with_(name=f"chain {number}") for number, case in enumerate(given)]
    cases = {case.name: case for case in drawn}
    traces = run_workloads(spark, cases, tmp_path)
    evidence = []
    for case in drawn:
        trace = traces[case.name]
        reference = run(case)
        if case.flush:
            assert results(trace) == results(reference), case.name
        else:  # some pairs may still be on their way to each other
            assert {*results(trace)} <= {*results(run(case.with_(flush=True)))}, case.name
        assert trace.of(Rejected) == reference.of(Rejected), case.name
        evidence.append(judge(case, trace))
        recording = validate_recording(case, trace)
        assert recording.outcome is Outcome.HOLDS, (recording.sentence, recording.witness)
    are_few = len(drawn) < FEW
    for verdict in over_all(evidence):
        known = {Outcome.HOLDS, Outcome.UNDETERMINED} if are_few else {Outcome.HOLDS}
        assert verdict.outcome in known, (verdict.claim, verdict.sentence, verdict.witness)
    for guard in CASES[:1] if are_few else CASES:
        assert sum(each.guards[guard] for each in evidence), f"there were no {guard}"
    long = [trace for trace in traces.values() if workers_of(trace) >= 3]
    assert any(trace.of(Forward) for trace in long), "no chain of three or more sent a block"
    assert any(step.copies for trace in long for step in trace.of(Receive)), "no copy was joined"


def silent_case(seed: int) -> Workload:
    """Return the drawn case with the fewest epochs in which a silent stream makes arrivals late."""
    late = "arrivals late by a floor"
    drawn = (case.with_(flush=True) for case in collect(cases(), 200, seed))
    found = [case for case in drawn if judge(case, run(case)).guards[late]]
    return min(found, key=lambda case: len(list(case.batches())))


def workers_of(trace: Trace) -> int:
    return len({step.worker for step in trace.of(Quiet)})


def inside(r: Tuples, s: Tuples) -> Bools:
    """Plant a bug: the ends of the window do not belong to it."""
    return np.asarray(np.abs(r.ts - s.ts) < SCALE_US, np.bool_)


def forgets_copies(step: Step) -> None:
    """Plant a bug: from its first step on, a worker joins blocks with no copy."""
    joins_in = Worker._join_in
    if isinstance(step, Quiet):
        Worker._join_in = getattr(joins_in, "original", joins_in)  # type: ignore[method-assign]  # a fault is planted
    elif not hasattr(joins_in, "original"):

        def forgetful(self, sender, lane, other, blocks):  # type: ignore[no-untyped-def]  # a fault is planted
            unseen = [block._replace(seen=1 << 62) for block in blocks]
            joins_in(self, sender, lane, other, unseen)

        forgetful.original = joins_in  # type: ignore[attr-defined]  # a fault is planted
        Worker._join_in = forgetful  # type: ignore[method-assign]  # a fault is planted


@pytest.mark.parametrize(
    ("workers", "free", "bug", "words"),
    [
        (2, {"all": inside}, None, "is a result of 'all'"),
        # Whether a result is lost as well depends on when blocks arrive.
        (3, {}, forgets_copies, "is not allowed"),
    ],
    ids=["the ends of the window are left out", "copies are not joined with"],
)
def test_a_chain_with_a_mistake_is_caught(
    spark: SparkSession,
    tmp_path: Path,
    seed: int,
    workers: int,
    free: dict[str, FreePredicate],
    bug: Callable[[Step], None] | None,
    words: str,
) -> None:
    case = long_case(workers, seed).with_(cuts=())
    config = JoinConfig.from_json(case.config)
    broken: list[str] = []
    for number in range(RUNS):
        store = tmp_path / str(number)
        chain = Chain(spark, config, store, free, recording=True, on_step=bug)
        chain.advance(rows_of(spark, case.arrivals))
        chain.advance(None)
        broken += broken_sentences(judge(case, read_trace(store)).verdicts)
        if any(words in sentence for sentence in broken):
            break
    assert any(words in sentence for sentence in broken), broken
