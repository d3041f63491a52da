"""A recording with one wrong step is no behaviour of the protocol, and credit counts blocks."""

import random
from collections import Counter
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from model.checking.claims import Outcome
from model.join import run
from model.join.replay import validate_recording
from model.join.state import Block, Copy, Lane, unacknowledged
from model.vocabulary import Trace, Workload
from model.vocabulary.join import PROTOCOL, Ack, Admit, Drop, Forward, Quiet, R, Receive
from properties.promised import Reached, promised
from straggler.strategies.join import cases

NEVER_US = (1 << 63) - 2
CHANGES: dict[Any, tuple[str, ...]] = {
    Admit: ("number", "first", "tuples", "pairs"),
    Forward: ("number", "block", "seen", "first", "last", "tuples"),
    Receive: ("number", "block", "copies", "pairs", "sent", "size"),
    Ack: ("number", "block"),
    Drop: ("number", "tuples"),
    Quiet: ("number", "r_held", "s_held"),
}
"""Fields whose value follows from what came before, by kind of step."""


def verdict(case: Workload, steps: list[Any]) -> Any:
    return validate_recording(case, Trace("x", steps))


def without(steps: list[Any], gone: Any) -> list[Any]:
    """Return the steps without one; later steps of its worker move up."""
    return [
        step._replace(number=step.number - 1)
        if step[:2] == gone[:2] and step.number > gone.number
        else step
        for step in steps
        if step != gone
    ]


def check_changes(case: Workload, rng: random.Random, met: Counter[str]) -> None:
    """Change a step of each kind, and leave one out."""
    trace = run(case)
    words = cast("tuple[Any, ...]", PROTOCOL)
    steps: list[Any] = [step for word in words for step in trace.of(word)]
    assert verdict(case, steps).outcome is not Outcome.BROKEN
    for word, fields in CHANGES.items():
        places = [n for n, step in enumerate(steps) if type(step) is word]
        if not places:
            continue
        n, field = rng.choice(places), rng.choice(fields)
        wrong = steps[n]._replace(**{field: getattr(steps[n], field) + 1})
        found = verdict(case, [*steps[:n], wrong, *steps[n + 1 :]])
        assert found.outcome is Outcome.BROKEN, (wrong, field)
        met[word.__name__] += 1
    last = max((step.epoch for step in steps), default=0)
    later = [step._replace(epoch=last + 1) if step.epoch == last else step for step in steps]
    assert not steps or verdict(case, later).outcome is Outcome.BROKEN
    check_late_watermarks(case, steps, rng, met)
    check_kept_copies(case, steps, met)


def check_late_watermarks(
    case: Workload, steps: list[Any], rng: random.Random, met: Counter[str]
) -> None:
    """Raise a watermark, which may be lower than it could be and never higher."""
    for word, field in ((Forward, "wm_us"), (Quiet, "r_wm_us"), (Quiet, "s_wm_us")):
        places = [
            n
            for n, step in enumerate(steps)
            if type(step) is word and getattr(step, field) < NEVER_US
        ]
        if places:
            n = rng.choice(places)
            wrong = steps[n]._replace(**{field: NEVER_US})
            found = verdict(case, [*steps[:n], wrong, *steps[n + 1 :]])
            assert found.outcome is Outcome.BROKEN, wrong
            met[field] += 1


def check_kept_copies(case: Workload, steps: list[Any], met: Counter[str]) -> None:
    """Leave out the last acknowledgement of a worker: then it is not quiet, and keeps a copy."""
    last = max((step.epoch for step in steps), default=0)
    for worker in {step.worker for step in steps if step.epoch == last}:
        own = sorted(
            (step for step in steps if step[:2] == (last, worker)), key=lambda step: step.number
        )
        while own and isinstance(own[-1], Quiet | Drop):
            own.pop()
        if own and isinstance(own[-1], Ack):
            found = verdict(case, without(steps, own[-1]))
            assert found.outcome is Outcome.BROKEN
            assert found.witness == ("A copy is kept.",)
            met["kept copy of " + own[-1].stream] += 1


KINDS = {word.__name__ for word in CHANGES} | {"wm_us", "r_wm_us", "s_wm_us"}


@promised(*sorted(KINDS), "kept copy of R", "kept copy of S", examples=60)
@given(case=cases(), rng=st.randoms(use_true_random=False))
def test_a_recording_with_a_wrong_step_is_no_behaviour(
    reached: Reached, case: Workload, rng: random.Random
) -> None:
    met = Counter[str]()
    check_changes(case, rng, met)
    reached.add(met)


@given(st.lists(st.sampled_from([-1, -1, 0, 1, 5]), max_size=5))
def test_a_block_counts_against_the_credit_until_its_acknowledgement(sent: list[int]) -> None:
    """An acknowledgement may say that nothing was sent before it."""
    copies = tuple(Copy(Block(R, n, 0, (n,), 0), each) for n, each in enumerate(sent))
    assert unacknowledged(Lane(copies=copies)) == sent.count(-1)
