"""Windows, senders and answers of a run, and the claims on drawn workloads."""

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given

from model.checking.claims import Outcome
from model.grouping import make_system, run
from model.grouping.claims import judge
from model.vocabulary import Event, Fault, Workload
from model.vocabulary.grouping import WORDS, Answer, Heavy, Partial, Rejected, Route
from model.vocabulary.trace import TraceReader
from tests.model.grouping.strategies import workloads

DIGEST = "67118309af2bc82e8324790472ec204968efb572774da73c1f6b269cc716a4b1"
"""Digest of the trace in every process, for any hash seed."""


def case(keys: str, cuts: tuple[int, ...] = (), **config: Any) -> Workload:
    """Return one tuple a letter, with the values 0, 1, 2, ..."""
    arrivals = tuple(Event(seq, 0, key, 100, float(seq), 100) for seq, key in enumerate(keys))
    return Workload("grouping", arrivals, {"instances": 2, **config}, cuts)


@given(workload=workloads())
def test_no_claim_is_broken(workload: Workload) -> None:
    broken = [v for v in judge(workload, run(workload)).verdicts if v.outcome is Outcome.BROKEN]
    assert not broken, broken


@given(workload=workloads())
def test_a_beginning_of_the_arrivals_is_routed_alike(workload: Workload) -> None:
    whole = run(workload).of(Route)
    for end in workload.cuts:
        cuts = tuple(cut for cut in workload.cuts if cut < end)
        part = workload.with_(arrivals=workload.arrivals[:end], cuts=cuts)
        assert run(part).of(Route) == whole[:end]


@given(workload=workloads())
def test_faults_and_flush_change_nothing(workload: Workload) -> None:
    other = workload.with_(faults=(Fault("kill", 0), Fault("restart", 1)), flush=False)
    assert make_system()(other).digest() == run(workload).digest()


@given(workload=workloads())
def test_cuts_within_a_window_change_no_route_unless_summaries_are_full(workload: Workload) -> None:
    window_tuples = workload.config["window_tuples"]
    ends, begun = [], 0
    for end in accumulate(len(batch) for batch in workload.batches()):
        if end - begun >= window_tuples:
            ends.append(end)
            begun = end
    constant = {**workload.config, "times_us": workload.config["times_us"][:1]}
    one = run(workload.with_(config=constant))
    cuts = tuple(end for end in ends if end < len(workload.arrivals))
    other = run(workload.with_(config=constant, cuts=cuts))
    if not judge(workload, one).guards["full summaries"]:
        assert one.of(Route) == other.of(Route)
    assert [answer[:3] for answer in one.of(Answer)] == [answer[:3] for answer in other.of(Answer)]


def test_cuts_change_heavy_keys_if_summaries_are_full() -> None:
    whole = case("abcdfffff", (7,), instances=3, window_tuples=7, theta=0.5)
    apart = whole.with_(cuts=(4, 7))
    assert not run(whole).of(Heavy)
    assert [heavy[1:5] for heavy in run(apart).of(Heavy)] == [("f", 4, 1, 7)]
    assert run(whole).of(Route) != run(apart).of(Route)


def test_a_window_ends_with_the_batch_that_fills_it() -> None:
    trace = run(case("aaaaa", (2, 4), window_tuples=3))
    assert [(answer.window, answer.n) for answer in trace.of(Answer)] == [(0, 4), (1, 1)]


def test_empty_batches_are_ignored() -> None:
    config = {"times_us": [[0, [1, 1]], [1, [9, 1]]], "window_tuples": 2, "policy": "shuffle"}
    one = run(case("aaaa", (2,), **config))
    assert run(case("aaaa", (0, 0, 2, 2, 2), **config)).digest() == one.digest()


def test_after_the_last_batch_there_is_no_window() -> None:
    assert run(case("aaaa", (2,), window_tuples=2)).of(Heavy) == (Heavy(1, "a", 2, 0, 2, (0, 1)),)


def test_times_of_a_window_are_those_of_its_first_batch() -> None:
    # Times of batch 1 come too late for window 0; window 1 starts with batch 2.
    config = {"times_us": [[0, [1, 1]], [1, [1, 7]], [3, [1, 1]]], "window_tuples": 2}
    places = [route.instance for route in run(case("a" * 18, (1, 2, 10), **config)).of(Route)]
    assert sorted(places[:2]) == [0, 1]
    assert places[2:10].count(0) == 7


def test_senders_know_nothing_of_each_other() -> None:
    trace = run(case("abcdefgh", policy="shuffle", senders=2))
    assert [(route.sender, route.instance) for route in trace.of(Route)] == [
        (0, 0), (1, 0), (0, 1), (1, 1), (0, 0), (1, 0), (0, 1), (1, 1)
    ]  # fmt: skip


def test_a_key_is_heavy_by_what_all_senders_counted() -> None:
    trace = run(case("abacabaa", (7,), window_tuples=7, senders=2, theta=0.4))
    assert [(heavy.key, heavy.counted, heavy.tuples) for heavy in trace.of(Heavy)] == [("a", 4, 7)]


def test_rounding_may_make_all_of_five_times_n_keys_heavy() -> None:
    keys = [chr(0x4E00 + number) for number in range(425)]
    workload = case("".join([*keys, "a"]), (425,), instances=85, window_tuples=425, policy="pkg")
    trace = run(workload)
    assert len(trace.of(Heavy)) == 5 * 85
    assert not [v for v in judge(workload, trace).verdicts if v.outcome is Outcome.BROKEN]


@pytest.mark.parametrize(
    "policy", ["key", "round-robin", "shuffle", "pkg", "dkg", "nag-static", "cg", "dag"]
)
def test_heavy_keys_are_recorded_under_every_policy(policy: str) -> None:
    (heavy,) = run(case("aaaa", (3,), window_tuples=3, policy=policy)).of(Heavy)
    anywhere = policy not in {"key", "dkg"}
    assert (heavy.counted, heavy.tuples, len(heavy.candidates)) == (3, 3, 2 if anywhere else 1)


def test_answers_merge_what_instances_have() -> None:
    arrivals = case("aaaa").arrivals
    odd = (*arrivals, Event(4, 0, "a", 100, float("inf"), 100), Event(5, 0, "b", 1, -0.0, 1))
    odd = (*odd, Event(6, 0, "a", 1, 3.0, 1))
    trace = run(case("").with_(arrivals=odd, config={"instances": 2, "policy": "shuffle"}))
    assert trace.of(Partial) == (
        Partial(0, 0, "a", 3, 5.0, 0.0, 3.0),
        Partial(0, 1, "a", 2, 4.0, 1.0, 3.0),
        Partial(0, 1, "b", 1, 0.0, 0.0, 0.0),
    )
    assert trace.of(Answer) == (
        Answer(0, "a", 5, 9.0, 0.0, 3.0, 4, (3.0, 3.0, 2.0)),
        Answer(0, "b", 1, 0.0, 0.0, 0.0, 1, (0.0,)),
    )
    assert trace.of(Rejected) == (Rejected(4, "value is not a finite number"),)


def test_a_trace_survives_its_file() -> None:
    trace = run(case("abacabaa", (4,), window_tuples=4))
    *_, again = map(TraceReader(WORDS).feed, trace.lines())
    assert again is not None
    assert trace.of(Heavy)
    assert list(again.steps()) == list(trace.steps())


def test_an_empty_workload_has_an_empty_trace() -> None:
    assert len(run(case(""))) == 0
    with pytest.raises(ValueError, match="instances is 0"):
        run(case("a", instances=0))


def test_the_same_seed_gives_the_same_trace() -> None:
    workload = case("abracadabra" * 9, (30, 60), window_tuples=30, senders=3, theta=0.2)
    assert {word: len(run(workload).of(word)) for word in WORDS}[Heavy] > 0
    assert run(workload).digest() == run(workload).digest() == DIGEST
