"""Judgement of a promise about a windowed trace: evidence, counterexamples and gaps.

Rules of this file:

* A promise names the kinds of steps it is read from; without them it is undetermined.
* The counterexample shown is the smallest one found, in sentences.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Generic, TypeVar

from model.checking.accounts import Accounts, row_claim
from model.checking.claims import Claim, Outcome, Verdict
from model.vocabulary.trace import kind_of
from model.vocabulary.windows import Cleared, Late, Rejected, Result, Revision, WindowQuery
from model.windows.accounts import accounts_of
from model.windows.evidence import Observation, Tick, Truth, WindowId

QueryT = TypeVar("QueryT", bound=WindowQuery)
TickT = TypeVar("TickT", bound=Tick)

SHOWN_TUPLES = 8

# ------------------------------------------------------------------------------------- evidence


@dataclass(frozen=True)
class Evidence(Generic[QueryT, TickT]):
    """The truth of a workload, and what a trace of it shows."""

    truth: Truth[QueryT]
    observed: Observation[TickT]

    @cached_property
    def accounts(self) -> Accounts:
        """The accounts of all arrivals."""
        return accounts_of(self.truth, self.observed, partial(name_of, self.truth))

    @cached_property
    def nothing_was_late(self) -> bool:
        """Return whether no late pair is recorded, and every answer contains every tuple."""
        return not self.observed.late and not self._lacks_tuples()

    @cached_property
    def impossible(self) -> str:
        """Sentence on a step of a task or batch that the workload does not have, if there is one.

        A task without a tuple has rejections at most.
        """
        truth = self.truth
        for step in self.observed.trace.steps():
            if isinstance(step, Rejected):
                continue
            place = step._asdict()
            task, batch = place.get("task"), place.get("batch", 0)
            if task is not None and task not in truth.arrived:
                return f"There is a {kind_of(type(step))} step of task {task}, which has no tuple."
            if not 0 <= batch <= truth.batches:
                return (
                    f"There is a {kind_of(type(step))} step in batch {batch}; none has this number."
                )
        return ""

    def _lacks_tuples(self) -> bool:
        """Return whether some closed window was answered without all its tuples."""
        for window in self.observed.closed:
            results = self.observed.results.get(window)
            n_rcv = results[0].n_rcv if results else 0
            if n_rcv < len(self.truth.windows.get(window, ())):
                return True
        return False


# ------------------------------------------------------------------------------ counterexamples


class Findings:
    """The counterexamples to one claim: their number, and the smallest one in sentences."""

    __slots__ = ("_size", "count", "sentence", "undetermined", "witness")

    def __init__(self) -> None:
        self.count = 0
        self._size = 0
        self.sentence = ""
        self.witness: tuple[str, ...] = ()
        self.undetermined = ""
        """Reason why the claim is undetermined; empty if it can be judged."""

    def add(self, size: int, sentence: str, *witness: str) -> None:
        """Add a counterexample; the one with the smallest ``size`` is shown."""
        self.count += 1
        if self.count == 1 or (size, sentence) < (self._size, self.sentence):
            self._size = size
            self.sentence = sentence
            self.witness = witness


def name_of(truth: Truth[WindowQuery], window: WindowId) -> str:
    """Return a readable name of a window."""
    task, start_us, key = window
    of_key = f", key {key!r}" if truth.config.keyed else ""
    return f"window [{start_us}, {truth.end_us(window)}) of task {task}{of_key}"


def tuples_of(truth: Truth[WindowQuery], window: WindowId) -> str:
    """Return the distinct tuples of a window, in a sentence."""
    found = truth.windows.get(window, ())
    if not found:
        return "No accepted tuple belongs to it."
    shown = ", ".join(
        f"#{arrived.source_id} at {arrived.event_time_us} with {arrived.value:g} "
        f"(batch {arrived.batch})"
        for arrived in found[:SHOWN_TUPLES]
    )
    more = f", and {len(found) - SHOWN_TUPLES} more" if len(found) > SHOWN_TUPLES else ""
    return f"Its {len(found)} distinct tuples: {shown}{more}."


# --------------------------------------------------------------------------------------- claims


def is_flushed(truth: Truth[WindowQuery]) -> bool:
    """Return whether the stream is flushed at the end."""
    return truth.flush


LACKING = "windows with a rejected row"


def count_incomplete_windows(truth: Truth[WindowQuery]) -> int:
    """Return the number of windows with an answer that lack a row that was rejected."""
    return sum(window in truth.windows for window in truth.incomplete)


def claim(
    name: str,
    judge: Callable[[Truth[QueryT], Observation[TickT], Findings], None],
    needs: Sequence[Sequence[type]],
    guard: str,
    applies: Callable[[Truth[QueryT]], bool] = lambda _truth: True,
    *,
    needs_identities: bool = False,
    of_answers: bool = False,
) -> Claim[Evidence[QueryT, TickT]]:
    """Return a claim that ``judge`` checks by adding counterexamples to the findings.

    At least one kind of step of each group in ``needs`` must be recorded. With
    ``needs_identities`` the claim says nothing about a source that redelivers while ``dedup`` is
    off. ``of_answers``: see :class:`model.checking.claims.Claim`.
    """

    def check(evidence: Evidence[QueryT, TickT]) -> tuple[()] | Verdict:
        if evidence.impossible:
            return Verdict(name, Outcome.BROKEN, evidence.impossible)
        findings = Findings()
        judge(evidence.truth, evidence.observed, findings)
        if findings.count:
            in_all = f" ({findings.count:,} counterexamples in all.)" if findings.count > 1 else ""
            sentence = findings.sentence + in_all
            return Verdict(name, Outcome.BROKEN, sentence, findings.witness)
        if findings.undetermined:
            return Verdict(name, Outcome.UNDETERMINED, findings.undetermined)
        return ()

    def gap(evidence: Evidence[QueryT, TickT]) -> str:
        missing = _missing_kinds(needs, evidence)
        if missing:
            return f"The trace has no {missing} steps."
        return describe_twice(evidence) if needs_identities else ""

    return Claim(
        name,
        guard,
        check,
        lambda evidence: applies(evidence.truth),
        gap,
        needs=needs,
        of_answers=of_answers,
    )


def describe_twice(evidence: Evidence[QueryT, TickT]) -> str:
    """Return a sentence if identities tell no tuples apart, or an empty string."""
    if evidence.truth.deliveries and not evidence.truth.config.dedup:
        return "The source delivers a tuple twice although dedup is off."
    return ""


def every_row() -> Claim[Evidence[QueryT, TickT]]:
    """Return the claim that every row is in one place."""

    def gap(evidence: Evidence[QueryT, TickT]) -> str:
        if evidence.truth.flush and evidence.truth.windows and not evidence.observed.results:
            return f"The trace has no {kind_of(Result)} steps."
        return describe_twice(evidence)

    needs = ((Result,), (Late,), (Rejected,))
    return row_claim(lambda evidence: evidence.accounts, "late pairs", needs, gap, of_answers=False)


def _missing_kinds(needs: Sequence[Sequence[type]], evidence: Evidence[QueryT, TickT]) -> str:
    """Return the first kinds of steps that are needed and missing.

    Kinds about late pairs may be missing if nothing was late.
    """
    for group in needs:
        is_about_late = set(group) <= {Late, Cleared, Revision}
        if is_about_late and evidence.nothing_was_late:
            continue
        if not any(evidence.observed.trace.of(word) for word in group):
            return " or ".join(kind_of(word) for word in group)
    return ""
