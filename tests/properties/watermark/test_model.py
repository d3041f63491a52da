"""Promises of docs/watermark.md about several readings of one stream, on the model.

Arrivals come from simulated networks (``straggler/strategies/streams.py``).
"""

from hypothesis import given

from model.checking.claims import Outcome
from model.vocabulary import System, Workload
from model.vocabulary.watermark import Clock
from model.watermark.claims import judge
from straggler.strategies.watermark import cases


def changed(case: Workload, **settings: object) -> Workload:
    """Return the case with other settings."""
    return case.with_(config={**case.config, **settings})


@given(case=cases())
def test_nothing_is_answered_earlier_than_by_a_fixed_watermark_can_be(
    system: System, case: Workload
) -> None:
    plain = changed(case, clocks="arrivals", dedup=False)
    adaptive = system(plain).of(Clock)
    fixed = system(changed(plain, reading="fixed")).of(Clock)
    assert len(adaptive) == len(fixed)
    assert all(one.wm_us >= other.wm_us for one, other in zip(adaptive, fixed, strict=True))


@given(case=cases(readings=("literal",)))
def test_the_literal_reading_keeps_all_promises_but_those_on_disorder(
    system: System, case: Workload
) -> None:
    broken = {
        verdict.claim
        for verdict in judge(case, system(case)).verdicts
        if verdict.outcome is Outcome.BROKEN
    }
    assert broken <= {
        "the wait is monotone in the disorder",
        "calm is not waited for",
        "reversal is waited for",
    }
