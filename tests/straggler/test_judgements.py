"""Judgements of promises: what an engine may answer, and what breaks a promise."""

import pytest

from model.vocabulary import Event, Trace
from model.vocabulary.join import Match
from model.vocabulary.windows import Final, Late
from straggler.conformance.draws import draw_workloads
from straggler.conformance.engines import Asked
from straggler.conformance.judgements import MICRO_BATCH, Answered, Judged
from straggler.conformance.promises import PROMISES, Values
from straggler.judging.references import run_model


def late_windows() -> Answered:
    """Return what the model answers to a window with a tuple in time and three late ones."""
    settings: Values = {
        "size_us": [4_000],
        "slide_us": [4_000],
        "aggregate": ["sum"],
        "keyed": [False],
    }
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
    found = {}
    for policy in ("key", "round-robin"):
        judged = []
        for workload in draw_workloads(Asked("balance", "?", {}), 4, 0):
            routed = run_model(
                promise.scope.room,
                workload.with_(config={**workload.config, "policy": policy}),
            )
            judged.append(promise.judge(Answered(promise.scope, workload, routed, routed)).broken)
        found[policy] = judged
    assert not any(found["round-robin"])
    assert any(found["key"])


def test_an_answer_without_a_tuple_in_time_is_no_answer() -> None:
    promise = PROMISES["in-time"]
    (workload,) = draw_workloads(Asked("in-time", "?", {}), 1, 0)
    expected = run_model(promise.scope.room, workload)
    answered = Answered(promise.scope, workload, expected, expected)
    assert promise.judge(answered) == Judged()
    assert promise.judge(answered._replace(observed=Trace("silent", []))).broken


def test_a_join_may_find_a_pair_that_came_too_late_but_no_wrong_or_second_one() -> None:
    promise = PROMISES["pairs-in-time"]
    for workload in draw_workloads(Asked("pairs-in-time", "?", {"lateness_us": [0]}), 20, 0):
        expected = run_model(promise.scope.room, workload)
        patient = workload.with_(
            config={**workload.config, "lateness_us": None, "idle_after_us": None}
        )
        every = run_model(promise.scope.room, patient).of(Match)
        if len(every) > len(expected.of(Match)) > 0:
            break
    else:
        pytest.fail("no stream has a late pair")
    query, r_id, s_id, _ = expected.of(Match)[0]
    wrong = Match(query, r_id, 987_654, 0)
    found = {
        "all": every,
        "is missing": (),
        "was found 2 times": (*every, Match(query, r_id, s_id, 0)),
        "is no result": (*every, wrong),
    }
    for sentence, matches in found.items():
        answered = Answered(promise.scope, workload, expected, Trace("other", matches))
        said = promise.judge(answered).broken
        assert (said == ()) == (sentence == "all"), sentence
        assert not said or sentence in " ".join(said)
