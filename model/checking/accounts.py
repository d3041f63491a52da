"""Accounts of rows: every row that was handed in is in one place, and a trace says in which.

Rules of this file:

* A row is an arrival; one that comes again is a row of its own.
* A room says where its words place each row. That no row is in two places or in none is judged
  here, for all rooms.
* Some answers name no rows and only count them. If such an answer counts too few, the rows that
  most of these answers could lack are in no place.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeVar

from model.checking.claims import SHOWN, Claim, Outcome, Verdict
from model.vocabulary import Event

E = TypeVar("E")

EVERY_ROW = "every row is in one place"
NOBODY = -1
"""Position of a row that is in a place and was not handed in."""
SHOWN_ROWS = 8


class Place(StrEnum):
    """The places of a row."""

    REFUSED = "refused"
    """In no answer, for another reason than lateness."""
    REDELIVERED = "redelivered"
    """An earlier row with its identity was admitted."""
    LATE = "late"
    """The first answer of a window lacks it, or it was refused because it came too late."""
    SHED = "shed"
    UNASKED = "unasked"
    """No window or workflow asks for it."""
    ANSWERED = "answered"
    PENDING = "pending"
    """An answer that it belongs to is still to come."""

    @property
    def case(self) -> str:
        """Name of the case that a row is in this place."""
        return f"rows {self}"


class CountedAnswer(NamedTuple):
    """An answer that does not name its rows."""

    name: str
    rows: Sequence[int]
    """Positions of the rows that belong in it."""
    counted: int
    """Number of rows in it."""


@dataclass(frozen=True, slots=True)
class Accounts:
    """Places of the rows of a workload, as a trace tells them."""

    rows: int
    counts: Counter[Place]
    """Number of rows that are in one place, by place."""
    against: Sequence[str]
    """Sentences on rows in several places or in none, and on places with other rows."""

    def verdict(self) -> Verdict:
        """Return whether every row is in one place, and how many are in each."""
        accounted = sum(self.counts.values())
        sentence = f"Accounted for: {accounted:,} of {self.rows:,}."
        if self.against:
            shown = tuple(self.against[:SHOWN])
            return Verdict(EVERY_ROW, Outcome.BROKEN, f"{sentence} {shown[0]}", shown)
        return Verdict(EVERY_ROW, Outcome.HOLDS, sentence)


def settle(
    arrivals: Sequence[Event],
    placed: Iterable[tuple[int, Place]],
    answers: Iterable[CountedAnswer] = (),
) -> Accounts:
    """Return the accounts of rows that are ``placed`` by their position.

    Rows of ``answers`` are among them. If an answer counts too few, those it could lack are in no
    place.
    """
    found: dict[int, list[Place]] = {event.seq: [] for event in arrivals}
    against: list[str] = []
    for seq, place in placed:
        if seq in found:
            found[seq].append(place)
        else:
            name = "A row" if seq == NOBODY else f"Row {seq}"
            against.append(f"{name} is {place}, but was not handed in.")
    wrong = [each for each in answers if each.counted != len(each.rows)]
    against += map(_describe, wrong)
    lost = _lost(wrong)
    counts = Counter[Place]()
    for event in arrivals:
        places = found[event.seq]
        if len(places) == 1:
            counts[places[0]] += event.seq not in lost
        else:
            name = f"Row {event.seq} (#{event.source_id}, key {event.key!r})"
            against.append(f"{name} is {' and '.join(places) or 'in no place'}.")
    return Accounts(len(arrivals), counts, against)


def _describe(answer: CountedAnswer) -> str:
    shown = ", ".join(map(str, answer.rows[:SHOWN_ROWS])) or "none"
    more = ", ..." if len(answer.rows) > SHOWN_ROWS else ""
    counts = f"counts {answer.counted:,} rows" if answer.counted else "is missing"
    should = f"should count {len(answer.rows):,}"
    return f"The answer of {answer.name} {counts}, and {should}: {shown}{more}."


def _lost(answers: Sequence[CountedAnswer]) -> set[int]:
    """Return few rows whose loss explains the counts: first those that most answers share."""
    short = [each for each in answers if each.counted < len(each.rows)]
    suspected = Counter(seq for each in short for seq in each.rows)
    lost: set[int] = set()
    for answer in short:
        left = [seq for seq in answer.rows if seq not in lost]
        left.sort(key=lambda seq: -suspected[seq])
        lost.update(left[: max(0, len(left) - answer.counted)])
    return lost


def row_claim(
    accounts_of: Callable[[E], Accounts],
    guard: str,
    needs: Sequence[Sequence[type]],
    gap: Callable[[E], str] = lambda _evidence: "",
    *,
    of_answers: bool = True,
) -> Claim[E]:
    """Return the claim that every row is in one place, for the evidence of a room."""
    return Claim(
        EVERY_ROW,
        guard,
        lambda evidence: accounts_of(evidence).verdict(),
        gap=gap,
        needs=needs,
        of_answers=of_answers,
    )


def row_cases(
    accounts_of: Callable[[E], Accounts], *places: Place
) -> Mapping[str, Callable[[E], int]]:
    """Return functions that count the rows in places that a room has, by name of the case."""

    def count(place: Place) -> Callable[[E], int]:
        return lambda evidence: accounts_of(evidence).counts[place]

    return {place.case: count(place) for place in places}
