"""Claims about load (``model/join/load_claims.py``) on timed runs, moment by moment."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from model.claims import Outcome, Verdict
from model.join.load_claims import (
    CALM,
    NO_FALSE_SHEDDING,
    SCALED,
    SHED_AS_ASKED,
    Moment,
    Rule,
    judge,
    over_all,
)
from model.vocabulary.join import END_US
from properties.join.test_sim_load import CASE_STUDY, HEAVY, OVERLOAD, run
from sim.join import run as runs
from sim.join.series import Series, series_of
from sim.join.timed import Room

Look = Callable[..., Room]
SHEDS = {"shed": "linear", "base": 0.2, "margin": 0.1}


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Look:
    """Run with settings, and keep the room with its samples."""
    kept: list[Room] = []

    def keep(room: Room) -> Series:
        kept.append(room)
        return series_of(room)

    monkeypatch.setattr(runs, "series_of", keep)

    def room_of(**settings: object) -> Room:
        run(**settings)
        return kept[-1]

    return room_of


def moments(room: Room) -> list[Moment]:
    """Samples as the claims ask for them."""
    first = room.samples[0]
    return [
        Moment(
            round(sample.at_us),
            sample.workers,
            sample.mean,
            sample.fullest,
            sample.smoothed,
            sample.share,
            sample.offered - before.offered,
            sample.dropped - before.dropped,
            sample.wanted,
        )
        for before, sample in pairwise([first, *room.samples])
    ]


SETTLED_US = 6_500_000, 11_500_000
"""The window of the heavy run is full and its tuples are spread; before that the first to expire
leave neighbours that differ by more than a block."""


def verdict_on(
    room: Room, claim: str, power: int = 1, within_us: tuple[int, int] | None = None
) -> Verdict:
    control = room.control
    rule = Rule(control.limits, control.capacity, control.base, power, control.margin)
    first_us, last_us = within_us or (0, END_US)
    chosen = [moment for moment in moments(room) if first_us <= moment.at_us <= last_us]
    verdicts = over_all([judge(chosen, rule)])
    return next(verdict for verdict in verdicts if verdict.claim == claim)


def test_there_is_no_false_shedding(look: Look) -> None:
    room = look(**HEAVY, blocks="adaptive")
    verdict = verdict_on(room, NO_FALSE_SHEDDING, within_us=SETTLED_US)
    assert verdict.outcome is Outcome.HOLDS, verdict.sentence


def test_a_fixed_block_size_is_found(look: Look) -> None:
    room = look(**HEAVY, blocks="fixed")
    assert verdict_on(room, NO_FALSE_SHEDDING, within_us=SETTLED_US).outcome is Outcome.BROKEN


@pytest.mark.parametrize(("rule", "power"), [("linear", 1), ("quadratic", 2)])
def test_what_is_asked_for_is_shed(look: Look, rule: str, power: int) -> None:
    room = look(**OVERLOAD, **{**SHEDS, "shed": rule})
    for claim in (SHED_AS_ASKED, CALM):
        verdict = verdict_on(room, claim, power)
        assert verdict.outcome is Outcome.HOLDS, (claim, verdict.sentence)
    # The other rule asks for another share.
    assert verdict_on(room, SHED_AS_ASKED, power=3 - power).outcome is Outcome.BROKEN


def test_workers_come_and_go_as_asked(look: Look) -> None:
    verdict = verdict_on(look(**CASE_STUDY), SCALED)
    assert verdict.outcome is Outcome.HOLDS, verdict.sentence
