"""A recording is a behaviour of the protocol, or its first step that is not is shown."""

from typing import Any

import pytest

from model.checking.claims import Outcome
from model.join.replay import validate_recording
from model.vocabulary import Event, JoinConfig, Step, Trace, Workload
from model.vocabulary.join import (
    Ack,
    Admit,
    And,
    Drop,
    Forward,
    Quiet,
    R,
    Receive,
    S,
)

LOW, HIGH = -(1 << 63), (1 << 63) - 1


def two_workers(n: int = 2) -> Workload:
    arrivals = tuple(Event(i, i, "a", 10 + i, 0.0, 10 + i, "RS"[i % 2]) for i in range(n))
    return Workload("join", arrivals, JoinConfig(5, (("all", And()),)).to_json(), flush=False)


PASSING: tuple[Any, ...] = (
    Admit(0, 0, 0, R, 0, 1, 0),
    Admit(0, 1, 0, S, 0, 1, 0),
    Forward(0, 0, 1, R, 1, 0, 0, 0, 1, LOW),
    Forward(0, 1, 1, S, 1, 0, 0, 0, 1, LOW),
    Receive(0, 1, 2, R, 1, 1, 1, 1, 1),
    Receive(0, 0, 2, S, 1, 0, 0, 1, 1),
    Ack(0, 0, 3, R, 1),
    Ack(0, 1, 3, S, 1),
    Quiet(0, 0, 4, 0, 1, LOW, LOW),
    Quiet(0, 1, 4, 1, 0, LOW, LOW),
)
"""A run in which r0 and s0 pass each other in the channels and meet at worker 1 (copy of s0)."""


def test_a_recording_by_hand_is_a_behaviour() -> None:
    verdict = validate_recording(two_workers(), Trace("x", PASSING))
    assert verdict.outcome is Outcome.HOLDS, (verdict.sentence, verdict.witness)


def replaced(position: int, **fields: Any) -> tuple[Step, ...]:
    changed = PASSING[position]._replace(**fields)
    return (*PASSING[:position], changed, *PASSING[position + 1 :])


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (replaced(0, stream=S), "S does not enter there."),
        (replaced(9, number=5), "Its next step is 4, not 5."),
        (replaced(0, first=1), "The rank is 1, not 0."),
        (replaced(0, tuples=2), "Epoch 0 admits R up to rank 1."),
        (replaced(2, block=2), "The block is 2, not 1."),
        (replaced(2, seen=1), "The seen is 1, not 0."),
        (replaced(2, last=1), "The first and last rank is (0, 1), not (0, 0)."),
        (replaced(2, wm_us=0), f"Its watermark is 0, above {LOW}."),
        (replaced(2, tuples=65), "A block of 65 is too large."),
        (replaced(4, copies=0), "The number of copies is 0, not 1."),
        (replaced(4, pairs=2), "The number of pairs is 2, not 1."),
        (replaced(4, sent=0), "The sent is 0, not 1."),
        (replaced(4, size=2), "The size is 2, not 1."),
        (replaced(6, block=2), "No such message is under way."),
        (replaced(8, s_held=0), "The number of tuples held is (0, 0), not (0, 1)."),
        (replaced(8, r_wm_us=0), f"Its watermark of R is 0, above {LOW}."),
        (replaced(9, worker=2), "There is no worker 2."),
    ],
)
def test_the_first_wrong_step_is_shown(steps: tuple[Step, ...], reason: str) -> None:
    verdict = validate_recording(two_workers(), Trace("x", steps))
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.witness == (reason,)


@pytest.mark.parametrize("left_out", range(len(PASSING)))
def test_a_step_that_is_missing_is_noticed(left_out: int) -> None:
    steps = (*PASSING[:left_out], *PASSING[left_out + 1 :])
    verdict = validate_recording(two_workers(), Trace("x", steps))
    assert verdict.outcome is Outcome.BROKEN


def test_an_epoch_ends_when_the_chain_is_quiet() -> None:
    steps = [*PASSING[:6], PASSING[8]._replace(number=3), PASSING[9]._replace(number=3)]
    verdict = validate_recording(two_workers(), Trace("x", steps))
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.witness == ("A copy is kept.",)


def test_a_drop_needs_the_watermark_that_has_passed() -> None:
    steps = (*PASSING[:8], Drop(0, 0, 4, S, 11, 0), *PASSING[8:])
    shifted = [s._replace(number=5) if isinstance(s, Quiet) and not s.worker else s for s in steps]
    verdict = validate_recording(two_workers(), Trace("x", shifted))
    assert verdict.outcome is Outcome.BROKEN
    assert "Its horizon is 11, above" in verdict.witness[0]
