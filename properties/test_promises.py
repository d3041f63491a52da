"""The five promises, checked on real Spark with SimPy as the reference.

Hypothesis draws packs of *clusters*: 2 to 16 workers of speeds up to 10 times apart, on network
tiers, with bursts, stalls and faults, and the tuples that stream to them. SimPy runs each cluster
and decides what arrives when, what is shed and where micro-batches end. Spark receives the same
workload. Then

1. Spark's trace equals the simulation's,
2. the promise holds on Spark's own trace, recomputed from the arrivals in plain Python that shares
   nothing with model or Spark (``properties/oracles``),
3. the cases that matter occurred on Spark.

A cluster that fails is shrunk and stored; ``straggler replay FILE`` runs it again.
"""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from model.grouping import balance_claims
from model.slack import claims
from model.slack.evidence import observe_trace, truth_of
from model.vocabulary.grouping import Heavy
from model.vocabulary.script.config import Result
from model.vocabulary.windows import Correction, Final, Late, Rejected
from properties import accounts, dirty_rows, handing_in
from properties.chain_runs import CARRIED, COLUMNED, count_chain, run_chain_pack
from properties.oracles import exchange
from properties.oracles.coverage import first_answers, list_low_coverage
from properties.oracles.join import compare_pairs_with_nested_loop
from properties.oracles.promises import tuples_of, unbalanced, wrong_routes
from properties.oracles.router import Excess, Router
from properties.packs import (
    ClusterRun,
    assert_claims_hold,
    assert_equals_simulation,
    assert_promise_kept,
    list_wrong_answers,
    list_wrong_routes,
    plain_steps,
    routes_of,
    run_packs,
)
from properties.promised import Reached, promised
from properties.reached_cases import PARTIAL, count_kills, count_partial, count_redelivered
from spark_impl.grouping import run_in_process
from straggler.judging.judge import broken_sentences
from straggler.strategies import families, queries
from straggler.strategies.chain_workloads import ChainPack, chain_packs
from straggler.strategies.packs import ClusterPack, join_packs
from straggler.strategies.scales import SIZED, count_scales

COVERAGE = (
    "slack follows alpha",
    "what is late came later than the slack",
    "the controller answers for its misses",
)
COVERED = replace(
    claims.CLAIMS,
    claims=tuple([each for each in claims.CLAIMS.claims if each.name in COVERAGE]),
    cases={each: claims.CASES[each] for each in ("tasks with a delay", "late pairs", "misses")},
)
"""The claims of the third promise alone: others take long on long streams."""
WORSE = ("key", "pkg", "tag-literal")
"""Policies that break the promise on the very streams on which ``tag`` keeps it: already with the
fewest and the most instances."""
DELTA = 1e-9
"""Probability that a window of a correct router exceeds the claimed imbalance."""


# ------------------------------------------------------------------------- join exactly once


@pytest.mark.fails_tasks
@promised(
    *CARRIED,
    *COLUMNED,
    "rejected",
    "redelivered tuples",
    "shed arrivals",
    "decisions by load",
    "changes of the number of workers",
    "changes of the block size",
    "forwarded blocks",
    "copies met",
    "messages that came late",
    "messages that came again",
    "lost connections",
    "kills with state",
)
@given(chain=chain_packs(families.CHAINS))
def test_every_pair_is_joined_exactly_once(
    spark: SparkSession, reached: Reached, chain: ChainPack
) -> None:
    """Judge what Spark did: pairs by a nested loop and by SimPy, and the exchange by counting."""
    seen = run_chain_pack(spark, chain, kills=1)
    workload = seen.workload.to_json()
    on_spark, simulated = plain_steps(seen.trace), plain_steps(seen.simulated)
    judged = seen.judge_claims()
    broken = [
        *compare_pairs_with_nested_loop(workload, on_spark),
        *seen.compare_pairs_with_simulation(),
        *broken_sentences(judged.verdicts),
        *exchange.compare_totals(on_spark, simulated),
    ]
    for steps in (on_spark, simulated):
        broken += exchange.wrong_exchange(workload, steps)
    broken += exchange.wrong_sends(on_spark, seen.came, seen.troubles["again"])
    limits = exchange.bound_bytes(workload, on_spark, seen.came)
    if not limits.least <= seen.bytes_sent <= limits.most:
        broken.append(f"{seen.bytes_sent} bytes were sent, {limits} are possible")
    if broken:
        seen.fail(broken)
    reached.add(count_chain(seen, judged.guards))


# ----------------------------------------------------------------------------- imbalance O(1)


@promised(
    "rebalances",
    "heavy keys",
    "new times",
    "kills with state",
    *(f"windows of {n} senders" for n in families.SENDERS),
    *(f"windows of {n} instances" for n in families.SIZES),
)
@given(light=families.light(), shared=families.shared(), drifting=families.drifting())
def test_imbalance_does_not_grow_with_instances(
    spark: SparkSession,
    reached: Reached,
    light: ClusterPack,
    shared: ClusterPack,
    drifting: ClusterPack,
) -> None:
    (observed,) = run_packs(spark, join_packs(light, shared, drifting), kills=1)
    windows: dict[str, dict[int, list[Excess]]] = defaultdict(lambda: defaultdict(list))
    for seen in observed.seen:
        workload, plan = seen.run.workload, seen.run.plan
        router, senders = Router(workload.to_json()), workload.config["senders"]
        assert_equals_simulation(seen)
        if broken := wrong_routes(router, plain_steps(seen.trace)):
            seen.fail(broken, list_wrong_routes)
        if senders == 1:
            weights = queries.key_weights_of(plan)
            assert_claims_hold(seen, balance_claims.check(workload, seen.trace, weights, DELTA))
        excesses = router.excesses(routes_of(seen.trace))
        times_us = [each.times_us for each in router.tables]
        reached.add({**count_cases(seen), "rebalances": len(router.windows) - 1})
        changed = sum(one != other for one, other in pairwise(times_us))
        reached.add({"heavy keys": len(seen.trace.of(Heavy)), "new times": changed})
        if not queries.is_steady(plan):  # No router can know the next hot keys.
            reached.add({"windows of drifting keys": len(excesses)})
            continue
        reached.add({f"windows of {router.n} instances": len(excesses)})
        reached.add({f"windows of {senders} senders": len(excesses)})
        windows["tag"][router.n] += excesses
        for policy in WORSE if router.n in (min(families.SIZES), max(families.SIZES)) else ():
            other = workload.with_(config={**workload.config, "policy": policy})
            windows[policy][router.n] += router.excesses(routes_of(run_in_process(other)))
    reached.add(count_kills(observed.kills))
    found = unbalanced(windows["tag"])
    assert not found, "\n".join(found)
    for policy in WORSE:
        assert unbalanced(windows[policy]), f"the promise says nothing: {policy} keeps it, too"


# ------------------------------------------------------- coverage of first answers >= lambda_thr


@promised(
    "late pairs",
    "short windows of 0.9",
    "short windows of 0.95",
    "short windows of 0.99",
    "short windows of (eps, delta)",
    "short windows of the published law",
    PARTIAL,
)
@given(
    asked=st.tuples(
        *map(families.with_a_long_stream, (0.9, 0.95, 0.99, None)),
        st.sampled_from([0.9, 0.95]).flatmap(lambda e: families.with_a_long_stream(e, "pd")),
    )
)
def test_first_answers_contain_the_requested_share(
    spark: SparkSession, reached: Reached, asked: tuple[ClusterPack, ...]
) -> None:
    # Promise 4 has the last answers, for which Spark joins tables.
    for pack, observed in zip(asked, run_packs(spark, *asked, finals=False), strict=True):
        config, long = pack.configs[0], observed.seen[-1]
        for seen in observed.seen:
            assert_equals_simulation(seen, Final)
            truth = truth_of(seen.run.workload)
            evidence = claims.Evidence(truth, observe_trace(truth, seen.trace))
            assert_claims_hold(seen, *COVERED.judge(evidence).verdicts)
            assert_promise_kept(seen, list_wrong_answers)
            reached.add({**count_cases(seen), PARTIAL: count_partial(seen.trace)})
        workload = long.run.workload.to_json()
        answers = first_answers(workload, plain_steps(long.trace))
        found = list_low_coverage(workload, answers)
        assert not found, "\n".join(found)
        law = "(eps, delta)" if config.lambda_thr is None else f"{config.lambda_thr}"
        name = "the published law" if config.control == "pd" else law
        windows = [each for of_task in answers.values() for each in of_task]
        reached.add({f"windows of {name}": len(windows)})
        reached.add({f"short windows of {name}": sum(each.is_short for each in windows)})


# ---------------------------------------------------------------------------- eventual exactness


@promised(
    *("late pairs", "corrections", "redelivered tuples", "kills with state", *SIZED),
    "results of scripts",
    "results sent between workers",
)
@given(slack=families.slack(), watermark=families.watermark(), scripts=families.scripts(2))
def test_every_answer_ends_exact(
    spark: SparkSession,
    reached: Reached,
    slack: ClusterPack,
    watermark: ClusterPack,
    scripts: ClusterPack,
) -> None:
    for observed in run_packs(spark, slack, watermark, scripts, kills=1):
        for seen in observed.seen:
            assert_equals_simulation(seen)
            if seen.room.name == "script":
                judged = seen.room.check(seen.run.workload, seen.trace).verdicts
                assert_claims_hold(seen, *judged)
                reached.add({"results of scripts": len(seen.trace.of(Result))})
                reached.add({"results sent between workers": int(seen.run.summary["results_sent"])})
                continue
            assert_promise_kept(seen, list_wrong_answers)
            windows = tuples_of(seen.run.workload.to_json()).of.values()
            assert not windows or seen.trace.of(Final), "there are no final answers"
            sizes = [len(each) for each in windows]
            reached.add({**count_cases(seen), **count_scales(seen.run.workload, sizes)})
        reached.add(count_kills(observed.kills))


# ------------------------------------------------------------------- every row is accounted for


@promised(
    "rows that did not land",
    "typed times that did not land",
    "typed cells without a number",
    "rows refused by a query",
    "rows that came again",
    "rows that came again with other content",
    "numbers in other digits",
    "rows late for a script",
    "rows of no script",
    "rows late for a chain",
    "corrected windows",
    "windows that lack rows",
    "windows of which all was refused",
    "sums of 0",
    "pairs",
    "rows that a query had not read",
    "rows that waited for answers",
    "rows that waited for a correction",
)
@given(seed=st.integers(0, 2**32))
def test_every_row_is_in_an_answer_or_in_a_list(
    spark: SparkSession, reached: Reached, seed: int
) -> None:
    files, typed = dirty_rows.draw_rows(seed), dirty_rows.draw_types(seed)
    with TemporaryDirectory(prefix="straggler-doors-") as folder:
        doors = handing_in.hand_in(spark, Path(folder), files, typed)
        counts = Counter[str]()
        wrong = list(accounts.unaccounted(doors, files, counts))
    assert not wrong, "\n".join(wrong)
    reached.add(counts)


# --------------------------------------------------------------------------------------- counting


def count_cases(seen: ClusterRun) -> dict[str, int]:
    """Count the input of Spark and the interesting cases in its trace."""
    workload, rejected = seen.run.workload, {step.seq for step in seen.trace.of(Rejected)}
    return {
        "clusters": 1,
        "tuples": len(workload.arrivals),
        "redelivered tuples": count_redelivered(workload, rejected),
        "late pairs": len(seen.trace.of(Late)),
        "corrections": len(seen.trace.of(Correction)),
    }
