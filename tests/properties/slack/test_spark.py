"""Promises 5 and 6 of docs/slack.md: Spark = model, on generated cases packed into few jobs.

This is real Spark, tier 3. ``properties/test_operators.py`` tests its operator in
simulated time, tier 2; the tests of the pipeline kill drivers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from model.vocabulary import Fault, SlackConfig, Trace, Workload
from model.vocabulary.slack import CONTROLS, SAMPLINGS
from model.vocabulary.windows import AGGREGATES
from properties import profiles, stream_packs
from properties.reached_cases import count_partial
from properties.stream_packs import StreamPack
from straggler.rooms import find_room
from straggler.strategies.streams import configs, reordered, requirements
from tests.properties.slack.test_model import answers, unbatched
from tests.properties.slack.test_rules import assert_parts, queries_of, streams_of

LARGE = 100
"""Fewest tuples of a large window."""
NEEDED = (
    "late pairs",
    "mixed tuples",
    "corrections of several windows",
    "misses",
    "judged windows with a negative value",
    "windows with a rejected row",
)


class Shape(NamedTuple):
    """The aggregate, the control and the requirement that a pack is generated for."""

    aggregate: str
    control: str
    method: str = "normal"
    sampling: str = "exchangeable"
    lambda_thr: float | None = None


SHAPES = (
    Shape("sum", "conformal", "permutation"),
    Shape("quantile", "pd", sampling="adversarial"),
    Shape("avg", "pd-clamped", "rigorous"),
    Shape("min", "fixed", lambda_thr=0.5),
    Shape("max", "max", lambda_thr=0.9),
    Shape("avg", "pd"),
    Shape("sum", "pd-clamped", "rigorous", "adversarial"),
    Shape("median", "conformal", sampling="adversarial"),
    Shape("avg", "fixed", lambda_thr=0.5),
    Shape("median", "max", lambda_thr=0.5),
    Shape("quantile", "pd-clamped", lambda_thr=0.9),
    Shape("count", "pd"),
)
"""Shapes of the packs in turn. Profile ``ci`` has all but the last: ``test_promises.py`` counts on
Spark. A sum with the usual method is in the pack that runs once more with changes."""
ELSEWHERE = {(name, method) for name in ("sum", "count") for method in ("normal", "lambda_thr")}
"""Aggregates and methods of packs that profile ``ci`` has elsewhere."""
VARIED = profiles.choose(24, nightly=40)
"""Cases in a pack that runs once more with a change that may make no difference."""
DENSE_SHARE = 8
"""One of so many streams of a pack has hundreds of tuples in a window."""

SLACK = find_room("slack")


def query(number: int, seed: int) -> SlackConfig:
    """Return a query of the wanted shape, but not the first one drawn, which is the plainest.

    When every shape had its turn, requirements are those that were drawn.
    """
    shape = SHAPES[number % len(SHAPES)]
    drawn = stream_packs.collect(configs([shape.aggregate], [shape.control]), 12, seed + number)
    return drawn[-1] if number >= len(SHAPES) else replace(drawn[-1], **shape._asdict())


def draw_pack(number: int, seed: int, cases: int) -> StreamPack:
    return stream_packs.draw_pack(query(number, seed), cases, seed + number, cases // DENSE_SHARE)


def partial(config: SlackConfig) -> str:
    """Return the name of the case that a large window requires a part, by a query's rule."""
    rule = f"{config.aggregate}, {config.method}, {config.sampling}"
    return f"windows of {LARGE} tuples or more that require a part ({rule})"


@pytest.fixture(scope="module")
def drawn(seed: int) -> Iterator[list[Future[StreamPack]]]:
    """Yield all packs; draw the next ones while Spark runs one."""
    pool, effort = ThreadPoolExecutor(1), profiles.effort()
    yield [pool.submit(draw_pack, number, seed, effort.cases) for number in range(effort.packs)]
    pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def seen() -> Counter[str]:
    """Count the cases of the packs that have run."""
    return Counter()


def method_of(method: str, lambda_thr: float | None) -> str:
    return method if lambda_thr is None else "lambda_thr"


def test_shapes_cover_every_aggregate_control_and_requirement() -> None:
    assert {shape.aggregate for shape in SHAPES} == set(AGGREGATES)
    first = SHAPES[: profiles.EFFORTS["ci"].packs]
    assert {shape.control for shape in first} == set(CONTROLS)
    assert {shape.sampling for shape in first} == set(SAMPLINGS)
    methods = {(each.aggregate, method_of(each.method, each.lambda_thr)) for each in first}
    assert methods | ELSEWHERE == {
        (name, method_of(each.method, each.lambda_thr))
        for name in AGGREGATES
        for each in requirements(name)
    }


@pytest.mark.parametrize("number", range(profiles.effort().packs))
def test_pack_in_spark_equals_model(
    number: int, spark: SparkSession, drawn: list[Future[StreamPack]], seen: Counter[str]
) -> None:
    chosen = drawn[number].result()
    traces = stream_packs.run_in_spark(spark, chosen.cases)
    assert set(traces) == set(chosen.cases)
    broken = stream_packs.list_failing(SLACK, chosen.cases, traces)
    assert not broken, stream_packs.report(SLACK, chosen, broken)
    for name, case in chosen.cases.items():
        seen.update(SLACK.check(case, traces[name]).guards)
        seen[partial(SlackConfig.from_json(case.config))] += count_partial(traces[name], LARGE)
    seen["cases"] += len(traces)
    seen["packs"] += 1


def test_packs_held_enough_cases_and_every_interesting_one(seen: Counter[str]) -> None:
    effort = profiles.effort()
    assert seen["packs"] == effort.packs, "undetermined: not all packs were run"
    assert seen["cases"] == effort.packs * effort.cases
    # Gapped windows have no mixed tuple: one query cannot reach every case, all shapes must.
    needed: tuple[str, ...] = ("late pairs", "corrections")
    if effort.packs > 1:
        needed = (*NEEDED, "redelivered tuples", "rejected arrivals")
        needed += (partial(SlackConfig(2, 1, aggregate="avg")),)
    for guard in needed:
        assert seen[guard], f"there were no {guard}"


# ---------------------------------------------------------------------------- every rule, at night

AT_ONCE = 4
"""Number of queries that run at the same time, because a query waits half of its time."""


@pytest.mark.long
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_every_rule_of_a_query_holds_in_spark(
    aggregate: str, seed: int, spark: SparkSession
) -> None:
    queries = queries_of(aggregate, seed)
    streams = [streams_of(query, seed + number) for number, query in enumerate(queries)]
    packs = [StreamPack(*each) for each in zip(queries, map(_named, streams), strict=True)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ran = pool.map(lambda pack: stream_packs.run_in_spark(spark, pack.cases), packs)
        traces = list(ran)
    parts = Counter[SlackConfig]()
    for query, pack, own in zip(queries, packs, traces, strict=True):
        broken = stream_packs.list_failing(SLACK, pack.cases, own)
        assert not broken, stream_packs.report(SLACK, pack, broken)
        parts[query] += sum(map(count_partial, own.values()))
    assert_parts(queries, parts)


def _named(streams: Sequence[Workload]) -> dict[str, Workload]:
    """Return streams by name, each with at most one cut: a micro-batch takes Spark a second."""
    return {
        f"case-{number}": case.with_(name=f"case-{number}", cuts=case.cuts[:1])
        for number, case in enumerate(streams)
    }


# ------------------------------------------------------------------- changes that may not matter

CHANGING = SlackConfig(9_000, 4_000, tasks=2, gamma_us=9_000, eps=0.2)


class Varied(NamedTuple):
    """Flushed streams for the default control, and changed streams that run in the same job."""

    cases: Mapping[str, Workload]
    whole: Mapping[str, Workload]
    """The same streams without cuts, by the name of the case."""
    reordered: Sequence[tuple[Workload, Workload]]
    """Pairs of streams with the same tuples in another order."""

    @property
    def both_orders(self) -> Mapping[str, Workload]:
        """All streams of the pairs, by name."""
        pairs = enumerate(self.reordered)
        return {f"{n} {side}": pair[side] for n, pair in pairs for side in (0, 1)}


@pytest.fixture(scope="module")
def varied(seed: int) -> Varied:
    drawn = stream_packs.draw_pack(CHANGING, VARIED, seed, VARIED // DENSE_SHARE).cases
    cases = {name: case.with_(flush=True) for name, case in drawn.items()}
    whole = {name: case.with_(cuts=()) for name, case in cases.items()}
    return Varied(cases, whole, stream_packs.collect(reordered(CHANGING), VARIED, seed))


@pytest.fixture(scope="module")
def usual(varied: Varied, spark: SparkSession) -> Mapping[str, Trace]:
    """Run all streams in one job; the traces of changed ones have a suffix in their names."""
    together = {
        **varied.cases,
        **{f"{name} whole": case for name, case in varied.whole.items()},
        **varied.both_orders,
    }
    traces = stream_packs.run_in_spark(spark, together)
    assert_guards(NEEDED, varied.cases, traces)
    return traces


def assert_guards(
    needed: Sequence[str], cases: Mapping[str, Workload], traces: Mapping[str, Trace]
) -> None:
    guards = Counter[str]()
    for name, case in cases.items():
        guards.update(SLACK.check(case, traces[name]).guards)
    for guard in needed:
        assert guards[guard], f"there were no {guard}"


@profiles.except_in_dev()
def test_usual_sums_in_spark_equal_model(varied: Varied, usual: Mapping[str, Trace]) -> None:
    broken = stream_packs.list_failing(SLACK, varied.cases, usual)
    assert not broken, stream_packs.report(SLACK, StreamPack(CHANGING, varied.cases), broken)
    large = sum(count_partial(usual[name], LARGE) for name in varied.cases)
    assert large, f"there were no {partial(CHANGING)}"


@profiles.except_in_dev()
def test_cuts_change_no_answer_in_spark(varied: Varied, usual: Mapping[str, Trace]) -> None:
    assert any(case.cuts for case in varied.cases.values())
    for name in varied.whole:
        assert unbatched(usual[f"{name} whole"]) == unbatched(usual[name]), name


@profiles.except_in_dev()
def test_restarts_and_replayed_batches_change_nothing_in_spark(
    varied: Varied, usual: Mapping[str, Trace], spark: SparkSession
) -> None:
    faults = (Fault("restart", 0), Fault("kill", 1))
    batches = max(len(list(case.batches())) for case in varied.cases.values())
    assert batches > 2, "the faults would come after the end"
    crashed = {name: case.with_(faults=faults) for name, case in varied.cases.items()}
    traces = stream_packs.run_in_spark(spark, crashed)
    for name in crashed:
        assert traces[name].digest() == usual[name].digest(), name


@profiles.except_in_dev()
def test_order_and_redeliveries_change_no_final_answer_in_spark(
    varied: Varied, usual: Mapping[str, Trace]
) -> None:
    for number, pair in enumerate(varied.reordered):
        assert answers(usual[f"{number} 0"]) == answers(usual[f"{number} 1"]), pair
    both = {f"{n} {side}": pair[side] for n, pair in enumerate(varied.reordered) for side in (0, 1)}
    assert_guards(("late pairs", "corrections"), both, usual)
    redelivered = [
        one for one, other in varied.reordered if len(one.arrivals) != len(other.arrivals)
    ]
    assert redelivered, "no pair differed in its redeliveries"
