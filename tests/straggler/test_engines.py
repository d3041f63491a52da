"""Engines of others: their folders, their streams, and which answers break a promise."""

from contextlib import closing
from functools import cache
from itertools import product

import pytest

from model.vocabulary import Event, Trace, Workload
from model.vocabulary.join import Match
from model.vocabulary.windows import Final, Late
from straggler.conformance.draws import draw_workloads
from straggler.conformance.engines import Asked, Engine, engine_names, load_engine
from straggler.conformance.judgements import MICRO_BATCH, Answered, Judged
from straggler.conformance.page import Row, write_page
from straggler.conformance.promises import PROMISES, Values, count_cases
from straggler.conformance.results import Results, read_results
from straggler.conformance.trials import follow_trail, open_engine, try_workload
from straggler.errors import UsageError
from straggler.judging.judge import run_model
from tests.house.repository import ROOT

FOLDER = ROOT / "engines"
ENVIRONMENTS = ROOT / ".engines"
ENGINES = [load_engine(FOLDER, name, ENVIRONMENTS) for name in engine_names(FOLDER)]
STREAMS = 100
"""Number of different streams of a case."""


@cache
def drawn(promise: str) -> list[Workload]:
    """Draw streams of a promise for an engine that can take them all."""
    return draw_workloads(Asked(promise, "?", {}), 8, 0)


each_engine = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)


def judged(engine: Engine) -> Results:
    """Return the stored results; skip the test if there are none."""
    results = read_results(engine)
    if results is None:
        pytest.skip(f"{engine.title} was not judged yet")
    return results


def test_the_page_is_what_the_stored_results_say() -> None:
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    assert page == write_page([Row(engine, read_results(engine)) for engine in ENGINES]), (
        "straggler conformance --stored --markdown docs/conformance.md"
    )


@each_engine
def test_the_results_are_about_what_the_engine_is_asked_for(engine: Engine) -> None:
    results = judged(engine)
    asked = {(each.promise, each.how) for each in engine.cases}
    assert {(each.promise, each.how) for each in results.cases} <= asked
    assert all(each.counts["workloads"] == STREAMS for each in results.cases)
    assert {each.finding for each in results.trails} == {*engine.findings}


@pytest.mark.long
@pytest.mark.timeout(900)
@each_engine
def test_every_script_and_counterexample_still_shows_what_it_showed(engine: Engine) -> None:
    results = judged(engine)
    try:
        engine.refuse_absent()
    except UsageError as error:
        pytest.skip(str(error))
    for finding, trail in zip(engine.findings, results.trails, strict=True):
        assert follow_trail(engine, finding).outcome == trail.outcome, finding.script
    with closing(open_engine(engine)) as system:
        for asked, case in product(engine.cases, results.cases):
            is_it = (asked.promise, asked.how) == (case.promise, case.how)
            if is_it and case.workload is not None:
                tried = try_workload(asked, system, Workload.from_json(case.workload))
                assert tried.broken, case.promise
                assert tried.has_failed == bool(case.failure), tried.broken


def late_windows() -> Answered:
    """Return what the model answers to a window with a tuple in time and three late ones."""
    size: Values = {"size_us": [4_000], "slide_us": [4_000]}
    settings: Values = {**size, "aggregate": ["sum"], "keyed": [False]}
    (drawn,) = draw_workloads(Asked("in-time", "?", settings), 1, 0)
    times_us = (0, 9_000, 1_000, 13_000, 2_000, 3_000)
    events = [Event(seq, seq, "k", at_us, 2.0**seq, seq) for seq, at_us in enumerate(times_us)]
    config = {**drawn.config, "fixed_slack_us": 0}
    workload = drawn.with_(arrivals=tuple(events), config=config, cuts=(1, 2, 3, 4))
    scope = PROMISES["in-time"].scope
    expected = run_model(scope.room, workload)
    return Answered(scope, workload, expected, expected)


def holding(answered: Answered, value: float, n: int, *late: int) -> Judged:
    """Judge another answer for the first window, with reports of late tuples."""
    others = [final for final in answered.expected.of(Final) if final.start_us]
    first = Final(0, 0, "", value, n, 0, True)
    reports = [Late(0, 0, "", source_id, 0, 0) for source_id in late]
    observed = Trace("other", [first, *others, *reports])
    return PROMISES["in-time"].judge(answered._replace(observed=observed))


def test_an_answer_with_some_late_tuples_is_the_aggregate_of_those() -> None:
    answered = late_windows()
    assert len(answered.expected.of(Late)) == 3  # tuples 2, 4 and 5 of the values 4, 16 and 32
    assert holding(answered, 1.0, 1) == holding(answered, 53.0, 4) == Judged()
    assert holding(answered, 2.0, 1).broken
    assert holding(answered, 54.0, 4).broken
    assert holding(answered, 53.0, 5).broken
    assert holding(answered, 5.0, 2).undetermined
    assert holding(answered, 5.0, 2, 4, 5) == Judged()
    assert holding(answered, 17.0, 2, 4, 5).broken
    assert holding(answered, 5.0, 2, 0, 5).undetermined  # it was in time


def test_a_redelivery_that_comes_late_is_in_time_if_the_first_delivery_was() -> None:
    answered = late_windows()
    again = answered.workload.arrivals[0]._replace(seq=6)
    workload = answered.workload.with_(arrivals=(*answered.workload.arrivals, again))
    expected = run_model(answered.scope.room, workload)
    assert len(expected.of(Late)) == 4
    answered = answered._replace(workload=workload, expected=expected)
    assert holding(answered, 1.0, 1) == Judged()
    assert holding(answered, 4.0, 1).broken  # it holds a late tuple in the place of that in time


def test_micro_batches_say_which_late_tuples_count() -> None:
    answered = late_windows()._replace(late_by=MICRO_BATCH)
    # The watermark of the second micro-batch lets the third count, and no later one.
    assert holding(answered, 5.0, 2) == Judged()
    assert holding(answered, 17.0, 2).broken
    assert holding(answered, 21.0, 3).undetermined


def test_a_router_by_key_is_unbalanced_and_one_in_turn_is_not() -> None:
    promise = PROMISES["balance"]
    workload = drawn("balance")[0]
    for policy, is_balanced in (("key", False), ("shuffle", True)):
        asked = workload.with_(config={**workload.config, "policy": policy})
        routed = run_model(promise.scope.room, asked)
        judged = promise.judge(Answered(promise.scope, workload, routed, routed))
        assert (judged.broken == ()) == is_balanced, policy


def test_a_join_may_find_a_pair_that_came_too_late_but_no_wrong_or_second_one() -> None:
    promise = PROMISES["pairs-in-time"]
    for workload in draw_workloads(Asked("pairs-in-time", "?", {"lateness_us": [0]}), 20, 0):
        expected = run_model(promise.scope.room, workload)
        config = {**workload.config, "lateness_us": None, "idle_after_us": None}
        every = run_model(promise.scope.room, workload.with_(config=config)).of(Match)
        if len(every) > len(expected.of(Match)) > 0:
            break
    else:
        pytest.fail("no stream has a late pair")
    query, r_id, s_id, _ = expected.of(Match)[0]
    found = {
        "all": every,
        "is missing": (),
        "was found 2 times": (*every, Match(query, r_id, s_id, 0)),
        "is no result": (*every, Match(query, r_id, 987_654, 0)),
    }
    for sentence, matches in found.items():
        answered = Answered(promise.scope, workload, expected, Trace("other", matches))
        said = promise.judge(answered).broken
        assert (said == ()) == (sentence == "all"), sentence
        assert not said or sentence in " ".join(said)


def test_the_streams_have_the_cases_that_matter() -> None:
    for name, promise in PROMISES.items():
        counts = [count_cases(each, run_model(promise.scope.room, each)) for each in drawn(name)]
        for guard in promise.guards:
            assert sum(each[guard] for each in counts), (name, guard)


def test_a_stream_is_what_the_engine_can_take() -> None:
    asked = Asked("in-time", "?", {}, False, time_factor=1_000, arrivals_max=9, batch=2)
    fitted = draw_workloads(asked, 8, 0)
    for before, after in zip(drawn("in-time"), fitted, strict=True):
        identities = [event.source_id for event in after.arrivals]
        assert len(identities) == len(set(identities)) <= 9
        assert after.arrivals[0].event_time_us == before.arrivals[0].event_time_us * 1_000
        assert after.config["size_us"] == before.config["size_us"] * 1_000
        assert after.cuts == tuple(range(2, len(identities), 2))
        assert after.flush
