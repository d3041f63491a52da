"""A wrong change in one place of a right trace breaks the claim that must notice it."""

import pytest

from model.checking.claims import Outcome, Verdict
from model.slack import run
from model.slack.claims import CLAIMS, check
from model.slack.variants import VARIANTS
from model.vocabulary import Step, Trace, Workload
from model.vocabulary.windows import Correlation, Final, Rejected
from tests.quality.slack_changes import CHANGES, STREAM, TUMBLING, Change, at, extra


def changed(workload: Workload, word: type, change: Change) -> Trace:
    trace = run(workload)
    others: list[Step] = [step for step in trace.steps() if type(step) is not word]
    return Trace("changed", [*others, *change(list(trace.of(word)))])


def broken(workload: Workload, trace: Trace) -> dict[str, Verdict]:
    return {v.claim: v for v in check(workload, trace) if v.outcome is Outcome.BROKEN}


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_a_change_is_noticed(name: str) -> None:
    workload, word, change, claim, part = CHANGES[name]
    before = {verdict.claim: verdict.outcome for verdict in check(workload, run(workload))}
    assert Outcome.BROKEN not in before.values()
    assert before[claim] is Outcome.HOLDS
    found = broken(workload, changed(workload, word, change))
    assert claim in found
    assert part in found[claim].sentence


def test_no_claim_goes_without_a_planted_bug() -> None:
    tried = {claim for _, _, _, claim, _ in CHANGES.values()}
    tried |= {variant.promise for variant in VARIANTS.values()}
    assert tried == {claim.name for claim in CLAIMS.claims}


def test_the_witness_says_what_was_answered_and_what_was_right() -> None:
    trace = changed(STREAM, Final, at(0, value=9.0))
    assert broken(STREAM, trace)["eventual exactness"].witness == (
        "Its 1 distinct tuples: #2 at 12 with 4 (batch 0).",
        "The answer was 9 from 1 tuples (revision 1).",
        "Right is 4 from 1 tuples.",
        "Late for it: #2 in batch 0; cleared: #2.",
    )


def test_the_smallest_counterexample_is_shown_and_all_are_counted() -> None:
    trace = changed(STREAM, Final, lambda steps: [step._replace(value=0.0) for step in steps])
    verdict = broken(STREAM, trace)["eventual exactness"]
    assert verdict.sentence.endswith("is wrong. (7 counterexamples in all.)")
    assert verdict.witness[0].startswith("Its 1 distinct tuples")


def test_rejections_alone_change_no_promise() -> None:
    trace = changed(STREAM, Rejected, extra(Rejected(0, 0, 0, 0, "no reason")))
    assert not broken(STREAM, trace)


def test_sums_of_other_values_are_compared_with_a_tolerance() -> None:
    thirds = STREAM.with_(
        arrivals=tuple(event._replace(value=event.value / 3) for event in STREAM.arrivals)
    )
    right = run(thirds).of(Final)[0].value
    close = changed(thirds, Final, at(0, value=right * (1 + 1e-12)))
    assert "eventual exactness" not in broken(thirds, close)
    far = changed(thirds, Final, at(0, value=right * (1 + 1e-6)))
    assert "eventual exactness" in broken(thirds, far)


def test_correlations_that_are_not_recorded_are_undetermined() -> None:
    trace = run(TUMBLING)
    assert trace.of(Correlation)[0][4:] == (1, 3, 6, 6, 8)
    without_them = Trace("silent", [s for s in trace.steps() if type(s) is not Correlation])
    found = {verdict.claim: verdict.outcome for verdict in check(TUMBLING, without_them)}
    assert found["delay and value are compared as they came"] is Outcome.UNDETERMINED
