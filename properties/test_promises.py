"""The four promises, on real Spark, with SimPy as the reference.

Hypothesis draws packs of *clusters*: 2 to 16 workers of speeds up to 10 times apart, on network
tiers, with bursts, stalls and faults, and what streams to them. SimPy runs each of them and says
what arrived when, what was shed and where batches ended. Spark is given the same, and then

1. Spark's trace equals the simulation's,
2. the promise holds on Spark's own trace, counted anew from the arrivals,
3. the cases that matter occurred on Spark.

A cluster that fails is made smaller and stored; ``straggler replay FILE`` runs it again.
"""

from collections import defaultdict
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from model.grouping import balance, balance_claims
from model.grouping.balance_claims import Closeness, closeness
from model.join.claims import REJECTIONS, WRONG
from model.join.scope_claims import LOST, TWICE
from model.slack.coverage_claims import shares
from model.slack.evidence import observed_in, truth_of
from model.vocabulary import SlackConfig
from model.vocabulary.answers import Correction, Late
from model.vocabulary.grouping import Heavy
from model.vocabulary.join import Forward, Match, Receive, Rejected
from properties.generators import queries
from properties.generators.clusters import SEEDS
from properties.promises.clusters import (
    Observed,
    Pack,
    Seen,
    answers_that_end_wrong,
    claims,
    exact_windows,
    holds,
    keeps,
    observe,
    of_profile,
    packs,
    pairs_found_wrongly,
    promise,
    same,
)
from properties.promises.on_spark import windows_in_spark
from properties.slack.promise import first_answers, warm_up
from sim.sweep.statistics import clopper_pearson
from tests.harness.reached_cases import Reached

COVERAGE = (
    "slack follows alpha",
    "what is late came later than the slack",
    "the controller answers for its misses",
    "required coverage is right",
)
JUDGED_WINDOWS = 2_000
JUDGED_SHARE = 0.9
"""Of the windows of a long stream, at least."""
CONFIDENCE = 0.999
SIZES = (2, 4, 8, 16)
DELTA = 1e-9
"""Chance that a window of a good router has more imbalance than is claimed."""

# ------------------------------------------------------------------------- join exactly once


@promise(4, "rejected", "redelivered tuples", "forwarded blocks", "copies met", "kills with state")
@given(pack=packs("join", 8, queries.join_queries(), queries.chain_shape))
def test_every_pair_is_joined_exactly_once(
    spark: SparkSession, reached: Reached, pack: Pack
) -> None:
    (observed,) = observe(spark, pack, kills=2)
    for seen in observed.seen:
        same(seen)
        holds(seen, *claims(seen, TWICE, LOST, WRONG, REJECTIONS))
        keeps(seen, pairs_found_wrongly)
        reached.add({**counted(seen), "joined pairs": len(seen.trace.of(Match))})
    received = observed.shared.of(Receive)
    reached.add({"forwarded blocks": len(observed.shared.of(Forward)), **killed(observed)})
    reached.add({"copies met": sum(block.copies for block in received)})


# ----------------------------------------------------------------------------- imbalance O(1)


@promise(1, "rebalances", "heavy keys", "new times", *(f"windows of {n} instances" for n in SIZES))
@given(pack=packs("grouping", 32, queries.balanced_routers(), queries.router_shape, alike=False))
def test_imbalance_does_not_grow_with_instances(
    spark: SparkSession, reached: Reached, pack: Pack
) -> None:
    windows: dict[int, list[Closeness]] = defaultdict(list)
    for seen in observe(spark, pack)[0].seen:
        same(seen)
        workload, plan = seen.run.workload, seen.given.case.plan
        holds(seen, *balance_claims.check(workload, seen.trace, queries.drawn_with(plan), DELTA))
        found = closeness(workload, seen.trace)
        if found and queries.is_steady(plan):  # Nobody can know what keys will drift to.
            windows[workload.config["instances"]] += found
        changes = len(workload.config["times_us"]) - 1
        reached.add({**counted(seen), "rebalances": len(found), "new times": changes})
        reached.add({"heavy keys": len(seen.trace.of(Heavy))})
    for n, judged in windows.items():
        above = fmean(each.above for each in judged)
        limit = fmean(balance.tuples_above(each.times_us) for each in judged)
        reached.add({f"windows of {n} instances": len(judged)})
        assert above <= limit, f"with {n} instances {above:.2f} tuples above, {limit} allowed"


# ------------------------------------------------------- coverage of first answers >= lambda_thr


def asking(aggregate: str, *, is_given: bool) -> st.SearchStrategy[Pack]:
    """Draw clusters for queries that ask for ``lambda_thr``, or for a quality (eps, delta)."""
    asked = queries.coverage_queries(aggregate, is_given=is_given)
    return packs("slack", 44, asked, queries.windowed_shape)


@promise(1, "late pairs", "windows below the coverage", "wrong first answers")
@pytest.mark.parametrize("aggregate", of_profile(["sum", "count", "avg"]))
@given(data=st.data(), seed=SEEDS)
def test_first_answers_contain_what_was_asked_for(
    spark: SparkSession, reached: Reached, aggregate: str, data: st.DataObject, seed: int
) -> None:
    drawn = [data.draw(asking(aggregate, is_given=each)) for each in of_profile([True, False])]
    exchangeable = queries.exchangeable(aggregate, JUDGED_WINDOWS, seed)
    *seen, long = [each for found in observe(spark, *drawn, exchangeable) for each in found.seen]
    for each in seen:
        same(each)
        holds(each, *claims(each, *COVERAGE))
        reached.add({**counted(each), "windows below the coverage": below(each)[0]})
    same(long)
    holds(long, *claims(long, *COVERAGE))
    config, (few, judged, windows) = SlackConfig.from_json(long.given.config), below(long)
    assert judged >= JUDGED_SHARE * windows
    assert few / judged <= config.delta + 1 / (config.learning_rate * judged)
    wrong = first_answers(long.run.workload, long.trace).after(warm_up(config)).wrong(config)
    share = clopper_pearson(int(wrong.sum()), len(wrong), CONFIDENCE)
    assert share.low <= config.delta, f"wrong answers: {share}, promised {config.delta}"
    reached.add({**counted(long), "wrong first answers": int(wrong.sum())})


def below(seen: Seen) -> tuple[int, int, int]:
    """Count windows judged with less than ceil(lambda_thr n) of n tuples, all judged, and all."""
    truth = truth_of(seen.run.workload)
    found = shares(truth, observed_in(truth, seen.trace))
    judged = sum(each.judged for each in found)
    return sum(each.below for each in found), judged, len(truth.windows)


# ---------------------------------------------------------------------------- eventual exactness


@promise(2, "late pairs", "corrections", "redelivered tuples", "kills with state")
@given(
    slack=packs("slack", 44, queries.corrected_queries(), queries.windowed_shape),
    watermark=packs("watermark", 20, queries.corrected_watermarks(), queries.windowed_shape),
)
def test_every_answer_ends_exact(
    spark: SparkSession, reached: Reached, slack: Pack, watermark: Pack
) -> None:
    for observed in observe(spark, slack, watermark, kills=1):
        in_spark = windows_in_spark(spark, [seen.run.workload for seen in observed.seen])
        for seen, by_spark in zip(observed.seen, in_spark, strict=True):
            same(seen)
            keeps(seen, answers_that_end_wrong)
            assert by_spark == exact_windows(seen.run.workload)
            reached.add(counted(seen))
        reached.add(killed(observed))


# --------------------------------------------------------------------------------------- counting


def counted(seen: Seen) -> dict[str, int]:
    """Count what Spark was given, and what happened there."""
    rejected = {step.seq for step in seen.trace.of(Rejected)}
    admitted = [event for event in seen.run.workload.arrivals if event.seq not in rejected]
    return {
        "clusters": 1,
        "tuples": len(seen.run.workload.arrivals),
        "rejected": len(rejected),
        "redelivered tuples": len(admitted) - len({(e.stream, e.source_id) for e in admitted}),
        "late pairs": len(seen.trace.of(Late)),
        "corrections": len(seen.trace.of(Correction)),
    }


def killed(observed: Observed) -> dict[str, int]:
    """Count how often a pack was killed, and how often when it had state to go on from."""
    return {
        "kills": len(observed.kills),
        "kills with state": sum(batch > 0 for batch in observed.kills),
    }
