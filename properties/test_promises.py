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
from model.vocabulary.answers import Correction, Final, Late
from model.vocabulary.grouping import Heavy
from model.vocabulary.join import STREAMS, Forward, Match, Receive, Rejected
from properties import drawn_queries as queries
from properties.clusters import SEEDS
from properties.judge import broken_sentences
from properties.on_spark import windows_in_spark
from properties.promises import (
    Pack,
    Seen,
    claims,
    holds,
    observe,
    of_profile,
    packs,
    promise,
    same,
)
from properties.reached import Reached
from properties.recomputation import Answer, Delivery, joined_pairs, window_aggregates
from properties.slack.promise import first_answers, warm_up
from sim.statistics import clopper_pearson

COVERAGE = (
    "slack follows alpha",
    "what is late came later than the slack",
    "the controller answers for its misses",
    "required coverage is right",
)
JUDGED_WINDOWS = 2_000
CONFIDENCE = 0.999
DELTA = 1e-9
"""Chance that a window of a good router has more imbalance than is claimed."""

# ------------------------------------------------------------------------- join exactly once


@promise(4, "clusters", "rejected", "redelivered tuples", "forwarded blocks", "copies met", "kills")
@given(pack=packs("join", 8, queries.join_queries(), queries.chain_shape))
def test_every_pair_is_joined_exactly_once(
    spark: SparkSession, reached: Reached, pack: Pack
) -> None:
    (observed,), config = observe(spark, pack, kills=2), pack.configs[0]
    for seen in observed.seen:
        same(seen)
        holds(seen, *claims(seen, TWICE, LOST, WRONG, REJECTIONS))
        rejected = {step.seq for step in seen.trace.of(Rejected)}
        admitted = [e for e in seen.run.workload.arrivals if e.seq not in rejected]
        r, s = ([Delivery(*e[1:5]) for e in admitted if e.stream == name] for name in STREAMS)
        expected = {
            (query, *pair)
            for query, predicate in config.to_json()["queries"]
            for pair in joined_pairs(r, s, config.window_us, predicate)
        }
        for trace in (seen.trace, seen.run.trace):
            assert sorted(match[:3] for match in trace.of(Match)) == sorted(expected)
        reached.add({**counted(seen), "rejected": len(rejected), "joined pairs": len(expected)})
        again = len(admitted) - len({(event.stream, event.source_id) for event in admitted})
        reached.add({"redelivered tuples": again})
    received = observed.shared.of(Receive)
    reached.add(
        {
            "forwarded blocks": len(observed.shared.of(Forward)),
            "copies met": sum(block.copies for block in received),
            "kills": observed.kills,
        }
    )


# ----------------------------------------------------------------------------- imbalance O(1)


@promise(1, "clusters", "rebalances", "heavy keys", "new times", "windows of 16 instances")
@given(pack=packs("grouping", 32, queries.balanced_routers(), queries.router_shape, alike=False))
def test_imbalance_does_not_grow_with_instances(
    spark: SparkSession, reached: Reached, pack: Pack
) -> None:
    windows: dict[int, list[Closeness]] = defaultdict(list)
    for seen in observe(spark, pack)[0].seen:
        same(seen)
        workload, plan = seen.run.workload, seen.given.case.plan
        bounds = balance_claims.check(workload, seen.trace, queries.drawn_with(plan), DELTA)
        assert not broken_sentences(bounds), "\n".join(broken_sentences(bounds))
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


@promise(1, "clusters", "late pairs", "windows below the coverage", "wrong first answers")
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
    config, (few, judged) = SlackConfig.from_json(long.given.config), below(long)
    assert few / judged <= config.delta + 1 / (config.learning_rate * judged)
    wrong = first_answers(long.run.workload, long.trace).after(warm_up(config)).wrong(config)
    share = clopper_pearson(int(wrong.sum()), len(wrong), CONFIDENCE)
    assert share.low <= config.delta, f"wrong answers: {share}, promised {config.delta}"
    reached.add({**counted(long), "wrong first answers": int(wrong.sum())})


def below(seen: Seen) -> tuple[int, int]:
    """Count judged windows: those with fewer than ceil(lambda_thr n) of their n tuples, and all."""
    truth = truth_of(seen.run.workload)
    found = shares(truth, observed_in(truth, seen.trace))
    return sum(each.below for each in found), sum(each.judged for each in found)


def counted(seen: Seen) -> dict[str, int]:
    """Count what happened on Spark."""
    return {
        "clusters": 1,
        "tuples": len(seen.run.workload.arrivals),
        "late pairs": len(seen.trace.of(Late)),
        "corrections": len(seen.trace.of(Correction)),
    }


# ---------------------------------------------------------------------------- eventual exactness


@promise(2, "clusters", "late pairs", "corrections", "redelivered tuples", "kills")
@given(
    slack=packs("slack", 44, queries.corrected_queries(), queries.windowed_shape),
    watermark=packs("watermark", 20, queries.corrected_watermarks(), queries.windowed_shape),
)
def test_every_answer_ends_exact(
    spark: SparkSession, reached: Reached, slack: Pack, watermark: Pack
) -> None:
    packs_seen = observe(spark, slack, watermark, kills=1)
    for observed, config in zip(packs_seen, (slack.configs[0], watermark.configs[0]), strict=True):
        in_spark = windows_in_spark(spark, [seen.run.workload for seen in observed.seen])
        for seen, by_spark in zip(observed.seen, in_spark, strict=True):
            same(seen)
            tuples = [Delivery(*event[1:5]) for event in seen.run.workload.arrivals]
            exact = window_aggregates(tuples, config.aggregate, config.size_us, config.slide_us)
            for trace in (seen.trace, seen.run.trace):
                answers = {
                    (final.key, final.start_us): Answer(final.value, final.n)
                    for final in trace.of(Final)
                }
                assert answers == exact == by_spark
            again = len(tuples) - len({each.identity for each in tuples})
            reached.add({**counted(seen), "redelivered tuples": again})
        reached.add({"kills": observed.kills})
