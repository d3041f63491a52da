"""Check promises 1 and 2 of docs/slack.md: exact in the end, honest at any batch end.

Room ``slack`` makes both promises, and so does ``watermark`` with corrections.

Rules of this file:

* Brute force: every right answer is computed from the tuples of the window.
* A window is checked only at batch ends where something about it changed, because between two
  such ends nothing can become wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from model.checking.claims import Claim
from model.vocabulary.windows import Final, Late, Result, WindowQuery
from model.windows.claims import Evidence, Findings, QueryT, TickT, claim, name_of, tuples_of
from model.windows.course import CurrentAnswer, changes, current, in_time, is_right
from model.windows.evidence import Observation, Tick, Truth, WindowId

Check: TypeAlias = Callable[[Truth[WindowQuery], Observation[Tick], Findings], None]

# ------------------------------------------------------------------------- promise 1: in the end


def eventual_exactness(
    truth: Truth[WindowQuery], observed: Observation[Tick], findings: Findings
) -> None:
    """Check that the final answers are those of all distinct accepted tuples, and no others."""
    finals: dict[WindowId, CurrentAnswer] = {}
    provisional: set[WindowId] = set()
    for final in observed.trace.of(Final):
        window = final[:3]
        if window in finals:
            findings.add(0, f"Two final answers for the {name_of(truth, window)}.")
        finals[window] = CurrentAnswer(final.value, final.n, final.revision)
        if not final.exact:
            provisional.add(window)
    for window in finals.keys() - truth.windows.keys():
        sentence = f"There is a final answer for the {name_of(truth, window)}, which is empty."
        findings.add(0, sentence, _describe(finals[window]))
    for window, found in truth.windows.items():
        answer = finals.get(window)
        values = [arrived.value for arrived in found]
        if answer is None:
            sentence = f"The {name_of(truth, window)} has no final answer."
        elif answer.n != len(values) or not truth.is_right(answer.value, values):
            sentence = f"The final answer of the {name_of(truth, window)} is wrong."
        elif window in provisional and window not in truth.incomplete:
            sentence = f"The {name_of(truth, window)} is still provisional after the flush."
        else:
            continue
        findings.add(
            len(found),
            sentence,
            tuples_of(truth, window),
            _describe(answer),
            f"The right answer is {truth.aggregate(values):g} from {_tuples(len(values))}.",
            _describe_lateness(observed, window),
        )


# -------------------------------------------------------------------- promise 2: at any batch end


def wrong_answers_are_pending(
    truth: Truth[WindowQuery], observed: Observation[Tick], findings: Findings
) -> None:
    """Check that a closed window whose current answer is wrong has a pending pair."""
    has_late_and_flush = truth.flush and observed.late
    if not observed.cleared and (has_late_and_flush or observed.revisions):
        findings.undetermined = "The trace has no cleared steps, so what is pending is unknown."
        return
    for window, closed in observed.closed.items():
        found = truth.windows.get(window, ())
        for batch in changes(observed, window, found, closed):
            present = [arrived.value for arrived in found if arrived.batch <= batch]
            answer = current(observed, window, batch)
            if is_right(truth, answer, present):
                continue
            if any(
                observed.is_pending(window, source_id, batch)
                for source_id in observed.late.get(window, ())
            ):
                continue
            right = truth.aggregate(present) if present else None
            findings.add(
                len(found),
                f"At the end of batch {batch} the closed {name_of(truth, window)} was wrong, "
                "and no pair of it was pending.",
                tuples_of(truth, window),
                _describe(answer),
                "There should be no answer."
                if right is None
                else f"The right answer was {right:g} from {_tuples(len(present))}.",
                _describe_lateness(observed, window),
            )
            break


def each_pair_once(
    truth: Truth[WindowQuery], observed: Observation[Tick], findings: Findings
) -> None:
    """Check that the stream's answer holds exactly the tuples not late for the window."""
    for window in observed.closed:
        results = observed.results.get(window, ())
        found = truth.windows.get(window, ())
        n_rcv = results[0].n_rcv if results else 0
        if len(results) < 2 and any(
            n_rcv == len(values) and (not values or truth.is_right(results[0].value, values))
            for values in in_time(truth, observed, window, n_rcv)
        ):
            continue
        findings.add(
            len(found),
            f"Not every tuple of the {name_of(truth, window)} was counted exactly once.",
            tuples_of(truth, window),
            *(f"The stream answered {each.value:g} from {each.n_rcv} of them." for each in results),
            *(() if results else ("The stream gave no answer.",)),
            _describe_lateness(observed, window),
        )


def exact_means_all_rows(
    truth: Truth[WindowQuery], observed: Observation[Tick], findings: Findings
) -> None:
    """Check that an answer is exact if and only if it lacks no pending pair and no rejected row.

    Exact or not, it is the answer that was written last, if the trace has that one.
    """
    knows_pending = observed.cleared or not observed.revisions
    for final in observed.trace.of(Final):
        window = final[:3]
        answer = CurrentAnswer(final.value, final.n, final.revision)
        latest = current(observed, window, truth.batches)
        has_latest = latest is not None and (observed.revisions or final.revision < 1)
        if has_latest and answer != latest:
            findings.add(
                len(truth.windows.get(window, ())),
                f"The final answer of the {name_of(truth, window)} is not the latest one.",
                f"In the end: {_describe(answer)}",
                f"Written last: {_describe(latest)}",
            )
        lacks = window in truth.incomplete or (
            knows_pending
            and any(
                observed.is_pending(window, source_id, truth.batches)
                for source_id in observed.late.get(window, ())
            )
        )
        if final.exact is lacks and (final.exact or knows_pending):
            why = "was rejected" if window in truth.incomplete else "is owed to it"
            said = f"exact although a row {why}" if lacks else "not exact although it lacks no row"
            findings.add(
                len(truth.windows.get(window, ())),
                f"The {name_of(truth, window)} is called {said}.",
                tuples_of(truth, window),
                _describe_lateness(observed, window),
            )


def corrections_do_not_wait(
    truth: Truth[WindowQuery], observed: Observation[Tick], findings: Findings
) -> None:
    """Check that pairs which a task owes at a batch end span <= Gamma and are <= max_age old."""
    config = truth.config
    batches = range(truth.batches + truth.flush)
    for task, clock in observed.clocks.items():
        wm_us = {progress.batch: progress.wm_us for progress in clock}
        owed: dict[tuple[WindowId, int], int] = {}
        arriving: dict[int, list[Late]] = {}
        for late in observed.trace.of(Late):
            if late.task == task:
                arriving.setdefault(late.batch, []).append(late)
        current_wm_us = clock[0].wm_us
        for batch in batches:
            current_wm_us = wm_us.get(batch, current_wm_us)
            for late in arriving.get(batch, ()):
                owed[late[:3], late.source_id] = late.event_time_us
            owed = {
                pair: event_time_us
                for pair, event_time_us in owed.items()
                if observed.is_pending(*pair, batch)
            }
            if not owed:
                continue
            oldest_us = min(owed.values())
            span_us, age_us = max(owed.values()) - oldest_us, current_wm_us - oldest_us
            if span_us > config.gamma_us or age_us > config.max_age:
                findings.add(
                    len(owed),
                    f"Task {task} was left uncorrected at the end of batch {batch}.",
                    f"It owes {len(owed)} pairs that span {span_us} us (Gamma is "
                    f"{config.gamma_us}) and lie up to {age_us} us behind the watermark "
                    f"(max_age is {config.max_age}).",
                )
                break


# ------------------------------------------------------------------------------------- the table

_CHECKS: Mapping[str, tuple[Check, Sequence[Sequence[type]], bool]] = {
    "eventual exactness": (eventual_exactness, ((Final,),), True),
    "wrong answers are pending": (wrong_answers_are_pending, ((Result,), (Late,)), True),
    "each pair once": (each_pair_once, ((Result,), (Late,)), True),
    "exact means all rows": (exact_means_all_rows, ((Final,), (Late,)), False),
}
"""Check of each claim, the kinds of steps it needs, and whether it needs identities."""
OF_ANSWERS = ("eventual exactness",)
"""Claims that the fields of answers decide."""


def exactness_claim(
    name: str,
    guard: str = "late pairs",
    applies: Callable[[Truth[QueryT]], bool] = lambda _truth: True,
) -> Claim[Evidence[QueryT, TickT]]:
    """Return the claim of this name, with the guard and the condition of a room."""
    check, needs, needs_identities = _CHECKS[name]
    return claim(
        name,
        check,
        needs,
        guard,
        applies,
        needs_identities=needs_identities,
        of_answers=name in OF_ANSWERS,
    )


# ------------------------------------------------------------------------------------ in words


def _describe(answer: CurrentAnswer | None) -> str:
    if answer is None:
        return "There was no answer."
    # A first answer has no number, and answers alone have none either.
    number = f" (revision {answer.revision})" if answer.revision else ""
    return f"The answer was {answer.value:g} from {_tuples(answer.n)}{number}."


def _describe_lateness(observed: Observation[Tick], window: WindowId) -> str:
    late = observed.late.get(window, {})
    if not late:
        return "No tuple was recorded as late for it."
    pairs = ", ".join(f"#{source_id} in batch {late[source_id][0]}" for source_id in sorted(late))
    cleared = sorted(observed.cleared.get(window, ()))
    done = ", ".join(f"#{source_id}" for source_id in cleared) or "none"
    return f"Late for it: {pairs}; cleared: {done}."


def _tuples(n: int) -> str:
    return "1 tuple" if n == 1 else f"{n} tuples"
