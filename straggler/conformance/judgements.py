"""Judgements of promises: the answers of an engine beside those of the model.

Rules of this file:

* A promise judges answers. What an engine does with a tuple later than the declared lateness is
  judged only by the promise that such tuples are reported.
* An answer is right if it is the aggregate of the tuples that it holds. If nobody says which late
  tuples these are, the answer is undetermined, and not taken for right.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from model.checking.claims import Outcome
from model.grouping.balance_claims import check_closeness
from model.vocabulary import SlackConfig, Trace, Workload, task_of
from model.vocabulary.grouping import Route
from model.vocabulary.join import Match
from model.vocabulary.windows import Final, Late
from model.vocabulary.workload import without_redeliveries
from model.windows.aggregates import aggregate_of
from straggler.judging.judge import broken_sentences, compare_traces
from straggler.judging.levels import Scope

ARRIVAL, MICRO_BATCH = "arrival", "micro-batch"
LATE_BY = (ARRIVAL, MICRO_BATCH)
"""Watermarks by which an engine may tell what is late."""

Window = tuple[int, int, str]
"""Task, start and key of a window."""


class Answered(NamedTuple):
    """Answers of an engine to a workload, beside those of the model."""

    scope: Scope
    workload: Workload
    expected: Trace
    observed: Trace
    late_by: str = ARRIVAL
    """``arrival`` or ``micro-batch``."""


class Judged(NamedTuple):
    """Sentences on the answers to a workload; a promise is kept if there are none."""

    broken: tuple[str, ...] = ()
    undetermined: tuple[str, ...] = ()
    has_failed: bool = False
    """True if the adapter failed instead of answering."""


# -------------------------------------------------------------------------------------- equality


def differs(answered: Answered) -> Judged:
    """Judge whether the answers are those of the model, and which claims they break."""
    scope, workload = answered.scope, answered.workload
    seen = scope.reduce(answered.observed, workload)
    claims = broken_sentences(scope.check(workload, seen).verdicts)
    return Judged((*claims, *differs_in_steps(answered).broken))


def differs_in_steps(answered: Answered) -> Judged:
    """Judge whether the answers are the expected ones."""
    scope, workload = answered.scope, answered.workload
    wanted = scope.reduce(answered.expected, workload)
    seen = scope.reduce(answered.observed, workload)
    types = scope.step_types
    agreement, _ = compare_traces(scope.room, workload, wanted, seen, types, ignore=scope.unjudged)
    return Judged(broken_sentences([agreement]))


# --------------------------------------------------------------------------------------- windows


def loses_windows(answered: Answered) -> Judged:
    """Judge whether every window has what was in time, and the aggregate of the tuples it holds."""
    workload = answered.workload
    config = SlackConfig.from_json(workload.config)
    values = {event.source_id: event.value for event in workload.arrivals}
    observed = answered.scope._replace(step_types=(Final, Late)).reduce(answered.observed, workload)
    # A redelivery may be late although the tuple came in time.
    late = _late_tuples(
        answered.scope.room.reference()(
            workload.with_(arrivals=without_redeliveries(workload.arrivals), cuts=())
        )
    )
    dropped = _late_tuples(observed)
    is_batched = answered.late_by == MICRO_BATCH
    counted = _by_window(_count_by_batch(workload, config) if is_batched else ())
    answers = {final[:3]: final for final in observed.of(Final)}
    lost, unclear, wanted = [], [], []
    for window, every in _by_window(_windows_of(workload, config)).items():
        in_time = every - late[window]
        n = answers[window].n if window in answers else 0
        if n < len(in_time):
            lost.append(
                f"{_name(window, config)} holds {n} of the {len(in_time)} tuples that came in time."
            )
        elif n:
            kept = in_time, every - dropped[window], counted[window], every
            held = next((each for each in kept if in_time <= each and len(each) == n), None)
            if held is None and n < len(every):
                unclear.append(f"{_name(window, config)} holds {n} tuples, and nobody says which.")
                wanted.append(answers[window])
                continue
            held = every if held is None else held
            value = aggregate_of(config)([values[source_id] for source_id in sorted(held)])
            wanted.append(Final(*window, value, len(held), 0, exact=True))
    if lost:
        return Judged(tuple(lost))
    right = differs_in_steps(answered._replace(expected=Trace("model", wanted)))
    return right._replace(undetermined=tuple(unclear))


def _name(window: Window, config: SlackConfig) -> str:
    _, start_us, key = window
    of_key = f" of key {key!r}" if key else ""
    return f"The window from {start_us} us to {start_us + config.size_us} us{of_key}"


def _by_window(pairs: Iterable[tuple[Window, int]]) -> defaultdict[Window, set[int]]:
    """Return the identities of tuples, by window."""
    found: defaultdict[Window, set[int]] = defaultdict(set)
    for window, source_id in pairs:
        found[window].add(source_id)
    return found


def _late_tuples(trace: Trace) -> defaultdict[Window, set[int]]:
    """Return the identities of tuples that a trace reports as late, by window."""
    return _by_window((late[:3], late.source_id) for late in trace.of(Late))


def _windows_of(workload: Workload, config: SlackConfig) -> Iterator[tuple[Window, int]]:
    """Yield the windows of every arrival, each with its identity."""
    for event in workload.arrivals:
        task, key = task_of(event.key, config.tasks), event.key if config.keyed else ""
        for index in config.windows.indices(event.event_time_us):
            yield (task, config.windows.start_us(index), key), event.source_id


def _count_by_batch(workload: Workload, config: SlackConfig) -> Iterator[tuple[Window, int]]:
    """Yield the windows that count an arrival if they are dropped by micro-batches.

    The watermark of a micro-batch follows from the tuples before it. A window that has ended by it
    is answered at the end of that micro-batch, and takes nothing afterwards.
    """
    latest_us = dropped_until_us = -math.inf
    for events in workload.batches():
        part = workload.with_(arrivals=events, cuts=())
        for window, source_id in _windows_of(part, config):
            if window[1] + config.size_us > dropped_until_us:
                yield window, source_id
        dropped_until_us = latest_us - config.fixed_slack_us
        latest_us = max(latest_us, *(event.event_time_us for event in events))


# ----------------------------------------------------------------------------------------- joins


def loses_pairs(answered: Answered) -> Judged:
    """Judge whether pairs of tuples in time are missing, and whether any is wrong or found twice.

    Pairs with a later tuple may be found or not.
    """
    workload = answered.workload
    patient = workload.with_(config={**workload.config, "lateness_us": None})
    allowed = _pairs_of(answered.scope.room.reference()(patient))
    found, wanted = _pairs_of(answered.observed), _pairs_of(answered.expected)
    sentences = [
        f"The pair of r #{r_id} and s #{s_id}, both in time, is missing."
        for _, r_id, s_id in sorted(wanted.keys() - found.keys())
    ]
    for pair, times in sorted(found.items()):
        _, r_id, s_id = pair
        if pair not in allowed:
            sentences.append(f"The pair of r #{r_id} and s #{s_id} is no result of the query.")
        if times > 1:
            sentences.append(f"The pair of r #{r_id} and s #{s_id} was found {times} times.")
    return Judged(tuple(sentences))


def _pairs_of(trace: Trace) -> Counter[tuple[str, int, int]]:
    """Return how often each pair was found."""
    return Counter((match.query, match.r_id, match.s_id) for match in trace.of(Match))


# --------------------------------------------------------------------------------------- routing


def is_unbalanced(answered: Answered) -> Judged:
    """Judge whether the fullest instance lies too far above a fluid."""
    routed = Counter(route.seq for route in answered.observed.of(Route))
    if routed != Counter(range(len(answered.workload.arrivals))):
        return Judged(("Not every tuple was routed exactly once.",))
    verdict = check_closeness(answered.workload, answered.observed)
    sentences = (verdict.sentence, *verdict.witness)
    if verdict.outcome is Outcome.BROKEN:
        return Judged(sentences)
    return Judged((), sentences if verdict.outcome is Outcome.UNDETERMINED else ())
