"""Wrong changes of a right trace of room ``join``, each with the claim that must notice it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from model.join.claims import IN_TIME, REJECTIONS, WRONG
from model.join.decision_claims import RESIZED, SHED
from model.join.replay import CLAIM as CONFORMS
from model.join.run import run
from model.join.state_claims import LOST, TWICE
from model.vocabulary import Event, JoinConfig, Trace, Workload
from model.vocabulary.join import And, Decision, Match, Quiet, Rejected
from tests.quality.changes import Changed, all_with, extra, without

CONFIG = JoinConfig(2, (("all", And()),), lateness_us=1)
ARRIVALS = (
    Event(0, 0, "a", 10, 1.0, 0, "R"),
    Event(1, 0, "a", 12, 2.0, 1, "S"),
    Event(2, 1, "a", 20, 1.0, 2, "R"),
    Event(3, 1, "a", 20, 1.0, 3, "S"),
    Event(4, 2, "a", 12, 1.0, 4, "R"),
)
CASE = Workload("join", ARRIVALS, CONFIG.to_json(), (2,))
R_AND_S = "(at 20, key 'a', value 1) with s #1 (at 20, key 'a', value 1)"
RESIZES = (Decision(1, 4, 2, 0.0), Decision(2, 2, 3, 0.0), Decision(3, 3, 1, 0.0))
BUSY = JoinConfig(100, (("all", And()),), lateness_us=2, decisions=RESIZES)
RESIZING = Workload(
    "join",
    tuple(Event(n, n // 2, "a", n // 2, 1.0, n, "RS"[n % 2]) for n in range(80)),
    BUSY.to_json(),
    (20, 40, 60),
)
"""A chain of two workers, then four, two and three."""
SHEDDING = RESIZING.with_(
    config=replace(BUSY, decisions=(Decision(0, 2, 4, 0.5), Decision(2, 2, 4, 0.0))).to_json()
)


def _forgotten(steps: list[Quiet]) -> list[Quiet]:
    """Return what workers hold at the end of an epoch, without one tuple."""
    at, last = next((n, step) for n, step in enumerate(steps) if step.r_held)
    return [*steps[:at], last._replace(r_held=last.r_held - 1), *steps[at + 1 :]]


_ROWS: tuple[Any, ...] = (
    (CASE, Match, extra(Match("all", 1, 1, 2)), TWICE, f"r #1 {R_AND_S} is a result of 'all'"),
    (CASE, Match, lambda _steps: [], LOST, "is a result of 'all'. (2 counterexamples in all.)"),
    (CASE, Match, extra(Match("all", 2, 0, 2)), WRONG, "r #2 (not admitted) with s #0"),
    (CASE, Match, all_with(batch=0), IN_TIME, "found in epoch 0; epochs 1 to 2 are possible."),
    (CASE, Rejected, without(0), REJECTIONS, "R #2 (arrival 4) is not rejected: event time"),
    (CASE, Rejected, extra(Rejected("S", 1, 0, "x")), REJECTIONS, "S #0 (arrival 1) is"),
    (RESIZING, Quiet, _forgotten, RESIZED, ""),
    (SHEDDING, Rejected, without(0), SHED, ""),
)
CHANGES = tuple(Changed(*each) for each in _ROWS)

DECIDED: tuple[tuple[Decision, ...], ...] = (
    tuple(each._replace(epoch=each.epoch + 1) for each in RESIZES),
    tuple(each._replace(block_size=9) for each in RESIZES),
    tuple(each._replace(workers=each.workers + 1) for each in RESIZES),
    (),
)
"""Other decisions than those of the run."""
BOTH = {RESIZED, CONFORMS}
"""Claims that notice them."""


def decided(decisions: tuple[Decision, ...]) -> Trace:
    """Return the trace of a chain that took other decisions."""
    return run(RESIZING.with_(config=replace(BUSY, decisions=decisions).to_json()))


# --------------------------------------------------------------------------- queries and epochs

EPOCHS: dict[str, tuple[int, int | None]] = {"added": (1, None), "once": (0, 0)}
LIMITED_CASE = CASE.with_(
    arrivals=tuple(event._replace(event_time_us=10) for event in ARRIVALS[:4]),
    config=JoinConfig(
        2,
        tuple((name, And()) for name in ("all", *EPOCHS)),
        epochs=tuple((name, *span) for name, span in EPOCHS.items()),
    ).to_json(),
)
"""A case with two pairs inside an epoch each, and two pairs across epochs."""
Asks = Callable[[int, int | None, int, int], bool]


def that_ask(asks: Asks) -> Trace:
    """Return the trace of a chain that pairs the tuples of two epochs if ``asks`` allows it."""
    free = LIMITED_CASE.with_(config={**LIMITED_CASE.config, "epochs": []})
    return Trace(
        "x",
        [
            match
            for match in run(free).of(Match)
            # Tuple 0 of either stream is admitted in epoch 0, tuple 1 in epoch 1.
            if asks(*EPOCHS.get(match.query, (0, None)), *sorted((match.r_id, match.s_id)))
        ],
    )


def within(first: int, last: int | None, *epochs: int) -> bool:
    """Return whether epochs are those of a query."""
    return all(first <= epoch and (last is None or epoch <= last) for epoch in epochs)
