"""The four promises, checked on real Spark with SimPy as the reference.

Hypothesis draws packs of *clusters*: 2 to 16 workers of speeds up to 10 times apart, on network
tiers, with bursts, stalls and faults, and the tuples that stream to them. SimPy runs each cluster
and decides what arrives when, what is shed and where micro-batches end. Spark receives the same
workload. Then

1. Spark's trace equals the simulation's,
2. the promise holds on Spark's own trace, recomputed from the arrivals in plain Python that shares
   nothing with model or Spark (``properties/oracles/promises.py``),
3. the cases that matter occurred on Spark.

A cluster that fails is shrunk and stored; ``straggler replay FILE`` runs it again.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import isclose
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from model.grouping import balance, balance_claims
from model.grouping.balance_claims import Closeness, closeness
from model.slack.coverage_claims import shortfalls
from model.slack.evidence import observe_trace, truth_of
from model.vocabulary import SlackConfig, Trace, Workload
from model.vocabulary.grouping import Heavy, Route
from model.vocabulary.join import Match, Rejected
from model.vocabulary.windows import Correction, Late
from properties import profiles
from properties.chain_runs import STRUCK, ChainPack, chain_packs, count_chain, run_chain_pack
from properties.on_spark import recompute_windows_in_spark
from properties.oracles import exchange
from properties.oracles.promises import wrong_joins
from properties.oracles.router import Router
from properties.packs import (
    ClusterPack,
    ClusterRun,
    PackRun,
    assert_claims_hold,
    assert_promise_kept,
    assert_same,
    exchangeable_stream,
    judge_claims,
    list_low_coverage,
    list_wrong_answers,
    list_wrong_routes,
    packs,
    plain_steps,
    recompute_windows,
    run_packs,
    simulate,
)
from properties.promised import Reached, promised
from properties.reached_cases import PARTIAL, SIZED, count_partial, count_scales
from sim.sweep.statistics import clopper_pearson
from straggler.rooms.slack.promise import first_answers, warm_up
from straggler.strategies import queries
from straggler.strategies.clusters import SEEDS
from straggler.strategies.scales import SCALES

COVERAGE = (
    "slack follows alpha",
    "what is late came later than the slack",
    "the controller answers for its misses",
    "required coverage is right",
)
JUDGED_WINDOWS = 500
JUDGED_SHARE = 0.9
"""Smallest share of the windows of a long stream that have to be judged."""
CONFIDENCE = 0.999
SIZES = (4, 16, 8, 2)
"""Numbers of instances."""
DRAWN_SIZE = [queries.balanced_routers()]
ROUTERS = [*map(queries.balanced_routers, SIZES)] if profiles.effort().packs > 1 else DRAWN_SIZE
"""Routers of every size in turn; profile ``dev`` has too few clusters, and draws the sizes."""
SMALL = 4
"""Most instances of a router whose fluid is found by trying all sets of them in a loop."""
DELTA = 1e-9
"""Probability that a window of a correct router exceeds the claimed imbalance."""

# ------------------------------------------------------------------------- join exactly once


@pytest.mark.fails_tasks
@promised(
    "rejected",
    "redelivered tuples",
    "shed arrivals",
    "changes of the number of workers",
    "changes of the block size",
    "forwarded blocks",
    "copies met",
    "messages that came late",
    "messages that came again",
    "lost connections",
    "kills with state",
)
@given(chain=chain_packs(packs("join", 6, queries.join_queries(), queries.chain_shape, STRUCK)))
def test_every_pair_is_joined_exactly_once(
    spark: SparkSession, reached: Reached, chain: ChainPack
) -> None:
    seen = run_chain_pack(spark, chain, kills=1)
    workload = seen.workload.to_json()
    simulated, on_spark = plain_steps(seen.simulated), plain_steps(seen.trace)
    broken = [*seen.differences(), *seen.broken_claims(), *wrong_joins(workload, on_spark)]
    for steps in (on_spark, simulated):
        broken += exchange.wrong_exchange(workload, steps)
    limits = exchange.bound_bytes(workload, on_spark, seen.troubles["again"])
    if not limits.least <= seen.bytes_sent <= limits.most:
        broken.append(f"{seen.bytes_sent} bytes were sent, {limits} are possible")
    if broken:
        seen.fail(broken)
    reached.add({**count_chain(seen), "joined pairs": len(seen.trace.of(Match))})


# ----------------------------------------------------------------------------- imbalance O(1)


@promised("rebalances", "heavy keys", "new times", *(f"windows of {n} instances" for n in SIZES))
@given(pack=packs("grouping", 4, ROUTERS, queries.router_shape))
def test_imbalance_does_not_grow_with_instances(
    spark: SparkSession, reached: Reached, pack: ClusterPack
) -> None:
    windows: dict[int, list[Closeness]] = defaultdict(list)
    for seen in run_packs(spark, pack)[0].seen:
        assert_same(seen)
        assert_promise_kept(seen, list_wrong_routes)
        workload, plan = seen.run.workload, seen.given.case.plan
        assert_claims_hold(
            seen, *balance_claims.check(workload, seen.trace, queries.key_weights_of(plan), DELTA)
        )
        found = closeness(workload, seen.trace)
        assert_same_closeness(workload, seen.trace, found)
        if found and queries.is_steady(plan):  # Nobody can know what keys will drift to.
            windows[workload.config["instances"]] += found
        changes = len(workload.config["times_us"]) - 1
        reached.add({**count_cases(seen), "rebalances": len(found), "new times": changes})
        reached.add({"heavy keys": len(seen.trace.of(Heavy))})
    for n, judged in windows.items():
        above = fmean(each.above for each in judged)
        limit = fmean(balance.tuples_above(each.times_us) for each in judged)
        reached.add({f"windows of {n} instances": len(judged)})
        assert above <= limit, f"with {n} instances {above:.2f} tuples above, {limit} allowed"


def assert_same_closeness(workload: Workload, trace: Trace, found: Sequence[Closeness]) -> None:
    """Compare the distances from a fluid with those of a router by definition, if it is small."""
    if workload.config["instances"] > SMALL:
        return
    router = Router(workload.to_json())
    routes = {step.seq: step.instance for step in trace.of(Route)}
    for each in found:
        assert isclose(each.above, router.tuples_above(each.window, routes), abs_tol=1e-6)
        assert balance.tuples_above(each.times_us) == router.allowed(each.window)


# ------------------------------------------------------- coverage of first answers >= lambda_thr


SHARES = (0.5, 0.75, 0.9, 1.0)[: profiles.choose(2, nightly=4)]
"""Required shares. A window of a few tuples needs all of them for more than the first two, and the
few queries of the other profiles have to meet windows that need a part."""


def coverage_packs(aggregate: str, *, is_given: bool) -> st.SearchStrategy[ClusterPack]:
    """Draw clusters for queries with a given ``lambda_thr``, or with a quality (eps, delta)."""
    asked = queries.coverage_queries(aggregate, SHARES if is_given else ())
    return packs("slack", 7, asked, queries.windowed_shape)


@promised("late pairs", PARTIAL, "windows below the coverage", "wrong first answers")
@pytest.mark.parametrize("aggregate", profiles.first(["sum", "count", "avg"], ci=2))
@given(data=st.data(), seed=SEEDS)
def test_first_answers_contain_the_requested_share(
    spark: SparkSession, reached: Reached, aggregate: str, data: st.DataObject, seed: int
) -> None:
    given = profiles.first([True, False], ci=1)
    drawn = [data.draw(coverage_packs(aggregate, is_given=each)) for each in given]
    long_stream = exchangeable_stream(aggregate, JUDGED_WINDOWS, seed)
    *seen, long = [each for found in run_packs(spark, *drawn, long_stream) for each in found.seen]
    for each in seen:
        assert_same(each)
        assert_claims_hold(each, *judge_claims(each, *COVERAGE))
        assert_promise_kept(each, list_wrong_answers)
        reached.add({**count_cases(each), PARTIAL: count_partial(each.trace)})
        reached.add({"windows below the coverage": count_below_coverage(each)[0]})
    assert_same(long)
    assert_claims_hold(long, *judge_claims(long, *COVERAGE))
    config, (too_few, judged, windows) = (
        SlackConfig.from_json(long.given.config),
        count_below_coverage(long),
    )
    assert judged >= JUDGED_SHARE * windows
    assert too_few / judged <= config.delta + 1 / (config.learning_rate * judged)
    wrong = first_answers(long.run.workload, long.trace).after(warm_up(config)).wrong(config)
    share = clopper_pearson(int(wrong.sum()), len(wrong), CONFIDENCE)
    assert share.low <= config.delta, f"wrong answers: {share}, promised {config.delta}"
    assert_promise_kept(long, list_wrong_answers)
    assert_promise_kept(long, list_low_coverage)
    reached.add({**count_cases(long), "wrong first answers": int(wrong.sum())})


def count_below_coverage(seen: ClusterRun) -> tuple[int, int, int]:
    """Return the numbers of windows below ceil(lambda_thr n) of n tuples, judged, and in all."""
    truth = truth_of(seen.run.workload)
    found = shortfalls(truth, observe_trace(truth, seen.trace))
    judged = sum(each.judged for each in found)
    return sum(each.below for each in found), judged, len(truth.windows)


# ---------------------------------------------------------------------------- eventual exactness


@promised("late pairs", "corrections", "redelivered tuples", "kills with state", *SIZED)
@given(
    slack=packs(
        "slack", 7, queries.corrected_queries(), queries.windowed_shape, scales=tuple(SCALES)
    ),
    watermark=packs(
        "watermark", 7, queries.corrected_watermarks(), queries.windowed_shape, scales=tuple(SCALES)
    ),
)
def test_every_answer_ends_exact(
    spark: SparkSession, reached: Reached, slack: ClusterPack, watermark: ClusterPack
) -> None:
    for observed in run_packs(spark, slack, watermark, kills=1):
        for seen in observed.seen:
            assert_same(seen)
            assert_promise_kept(seen, list_wrong_answers)
            windows = recompute_windows(seen.run.workload)
            reached.add({**count_cases(seen), **count_scales(seen.run.workload, windows)})
        reached.add(count_kills(observed))


@profiles.only_nightly()
@given(
    slack=packs(
        "slack", 7, queries.corrected_queries(), queries.windowed_shape, scales=tuple(SCALES)
    )
)
@settings(max_examples=1)
def test_the_oracle_of_windows_agrees_with_spark(spark: SparkSession, slack: ClusterPack) -> None:
    workloads = [run.workload for _, run in simulate(slack).values()]
    in_spark = recompute_windows_in_spark(spark, workloads)
    assert in_spark == [recompute_windows(workload) for workload in workloads]


# --------------------------------------------------------------------------------------- counting


def count_cases(seen: ClusterRun) -> dict[str, int]:
    """Count the input of Spark and the interesting cases in its trace."""
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


def count_kills(observed: PackRun) -> dict[str, int]:
    """Count the kills of a pack, and those that struck when it had state to resume from."""
    return {
        "kills": len(observed.kills),
        "kills with state": sum(batch > 0 for batch in observed.kills),
    }
