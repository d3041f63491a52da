"""The batch side: correct from history what the stream missed (docs/slack.md, section 6).

Source: the batch module of the hybrid processing model.

Rules of this file:

* ``Store`` and ``History`` survive a crash, a ``Plan`` does not.
* A correction moves in small steps: a plan (a snapshot of the pending pairs and of the history),
  then one revision written a step (with its correlation, where one is recorded), then the planned
  pairs cleared. A crash between any two of
  them loses the plan and nothing else; another plan repairs what was left undone.
* What a correction writes is told apart by its batch: written twice, it counts once.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from model.vocabulary import Event, Step
from model.vocabulary.answers import Cleared, Correction, Correlation, Final, Late, Result, Revision
from model.windows.aggregates import aggregate_of
from model.windows.query import Query
from model.windows.rules import AS_SPECIFIED, Correcting

# ---------------------------------------------------------------------------------------- state


class Window(NamedTuple):
    """One window of one task and key."""

    task: int
    start_us: int
    key: str


class Pair(NamedTuple):
    """A late (tuple, window) pair."""

    task: int
    start_us: int
    key: str
    source_id: int
    event_time_us: int

    @property
    def window(self) -> Window:
        """The window of the pair."""
        return Window(self.task, self.start_us, self.key)


class Answer(NamedTuple):
    """The current answer of a window; revision 0 is the stream's own."""

    value: float
    n: int
    revision: int
    batch: int


class Scores(NamedTuple):
    """Sums over the tuples of one window; see :class:`model.vocabulary.answers.Correlation`."""

    n: int
    cross: int
    delay_spread: int
    value_spread: int


Scored = Callable[[int, Sequence[Event]], Scores | None]
"""Scores of a window that starts then and has these tuples, in the order of their acceptance."""


def nothing_scored(_start_us: int, _tuples: Sequence[Event]) -> None:
    """No scores of any window."""


class Plan(NamedTuple):
    """A correction under way: what it will write and clear, and how far it is."""

    task: int
    batch: int
    reason: str
    pairs: tuple[Pair, ...]
    answers: tuple[tuple[Window, float, int], ...]
    """(window, value, n) from the history as it was when the plan was made."""
    scores: tuple[Scores | None, ...]
    """Of the same windows, delay against value; None where nothing is recorded."""
    written: int = 0
    is_cleared: bool = False


class History:
    """Every tuple that one task accepted, once, found by window.

    Tuples are kept in buckets of one slide, so that a window reads ceil(W / s) buckets.
    """

    __slots__ = ("_buckets", "_identities", "_is_keyed", "_windows")

    def __init__(self, config: Query) -> None:
        self._windows = config.windows
        self._is_keyed = config.keyed
        self._identities: set[int] = set()
        self._buckets: dict[tuple[int, str], list[tuple[int, Event]]] = defaultdict(list)
        """Tuples with their position in the order of acceptance."""

    def add(self, event: Event) -> None:
        """Keep the first accepted delivery of an identity; others change nothing."""
        identities = self._identities
        if event.source_id not in identities:
            position = len(identities)
            identities.add(event.source_id)
            bucket = event.event_time_us // self._windows.slide_us
            key = event.key if self._is_keyed else ""
            self._buckets[bucket, key].append((position, event))

    def tuples(self, start_us: int, key: str) -> list[Event]:
        """The tuples in the window that starts at ``start_us``, in the order of acceptance."""
        end_us = start_us + self._windows.size_us
        first = self._windows.last_index(start_us)
        last = self._windows.last_index(end_us - 1)
        found: list[tuple[int, Event]] = []
        for bucket in range(first, last + 1):
            found += self._buckets.get((bucket, key), ())
        if self._windows.start_us(last + 1) > end_us:
            found = [each for each in found if each[1].event_time_us < end_us]
        found.sort(key=itemgetter(0))
        return [event for _, event in found]

    def values(self, start_us: int, key: str) -> list[float]:
        """Their values."""
        return [event.value for event in self.tuples(start_us, key)]


class Pending:
    """P of one task: late pairs that no correction has covered yet."""

    __slots__ = ("newest_us", "oldest_us", "pairs")

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        self.pairs: dict[Pair, None] = {}
        self.oldest_us = self.newest_us = 0
        for pair in pairs:
            self.add(pair)

    def add(self, pair: Pair) -> None:
        """A set: a pair that is there already is not added again."""
        event_time_us = pair.event_time_us
        self.oldest_us = min(self.oldest_us, event_time_us) if self.pairs else event_time_us
        self.newest_us = max(self.newest_us, event_time_us) if self.pairs else event_time_us
        self.pairs[pair] = None

    def without(self, pairs: Collection[Pair]) -> "Pending":
        """What is still pending when ``pairs`` are not."""
        gone = set(pairs)
        return Pending(pair for pair in self.pairs if pair not in gone)


class Store:
    """What a user can query, and what is still owed: current answers, pending pairs by task."""

    __slots__ = ("answers", "pending")

    def __init__(self, answers: Iterable[tuple[Window, Answer]], pairs: Iterable[Pair]) -> None:
        self.answers = dict(answers)
        self.pending: dict[int, Pending] = {}
        for pair in pairs:
            self.pending.setdefault(pair.task, Pending()).add(pair)

    def all_pending(self) -> Iterator[Pair]:
        """The pending pairs of all tasks."""
        for pending in self.pending.values():
            yield from pending.pairs

    def record(self, step: Step) -> None:
        """Keep what the stream emitted: an answer, or a pair that it owes."""
        if isinstance(step, Result):
            window = Window(step.task, step.start_us, step.key)
            self.answers[window] = Answer(step.value, step.n_rcv, 0, step.batch)
        elif isinstance(step, Late):
            self.pending.setdefault(step.task, Pending()).add(Pair(*step[:5]))

    def final(self) -> list[Final]:
        """Return the answer of every window that has one, and whether anything of it is pending."""
        provisional = {pair.window for pair in self.all_pending()}
        return [
            Final(*window, answer.value, answer.n, answer.revision, window not in provisional)
            for window, answer in self.answers.items()
        ]


# -------------------------------------------------------------------------------------- actions


def due(
    config: Query,
    store: Store,
    task: int,
    wm_us: int,
    is_flush: bool,
    rules: Correcting = AS_SPECIFIED,
) -> str | None:
    """Why the task is to be corrected at the end of this batch, or None."""
    pending = store.pending.get(task)
    if pending is None or not pending.pairs:
        return None
    return rules.trigger(config, pending, wm_us, is_flush)


def plan(
    config: Query,
    store: Store,
    history: History,
    task: int,
    batch: int,
    reason: str,
    scored: Scored,
) -> Plan:
    """First small step: look at everything, change nothing."""
    aggregate = aggregate_of(config)
    pairs = tuple(store.pending[task].pairs)
    windows = sorted({pair.window for pair in pairs})
    tuples = [history.tuples(window.start_us, window.key) for window in windows]
    answers = tuple(
        (window, aggregate([event.value for event in found]), len(found))
        for window, found in zip(windows, tuples, strict=True)
    )
    scores = tuple(
        scored(window.start_us, found) for window, found in zip(windows, tuples, strict=True)
    )
    return Plan(task, batch, reason, pairs, answers, scores)


def advance(
    plan: Plan, store: Store, rules: Correcting = AS_SPECIFIED
) -> tuple[Plan | None, list[Step]]:
    """The next small step of a correction; no plan is left after the last one."""
    must_write = plan.written < len(plan.answers)
    if must_write and (plan.is_cleared or not rules.clears_first):
        steps = _write(plan, store)
        plan = plan._replace(written=plan.written + 1)
    else:
        plan, steps = plan._replace(is_cleared=True), _clear(plan, store, rules)
    is_over = plan.is_cleared and plan.written == len(plan.answers)
    return (None if is_over else plan), steps


def _write(plan: Plan, store: Store) -> list[Step]:
    """Write the next revision; the one that this batch wrote before, if it did, is replaced."""
    batch, (window, value, n) = plan.batch, plan.answers[plan.written]
    before = store.answers.get(window)
    if before is None:
        revision = 1
    elif before.revision > 0 and before.batch == batch:
        revision = before.revision
    else:
        revision = before.revision + 1
    store.answers[window] = Answer(value, n, revision, batch)
    steps: list[Step] = [Revision(*window, batch, revision, value, n)]
    scores = plan.scores[plan.written]
    if scores is not None:
        steps.append(Correlation(*window, batch, revision, *scores))
    return steps


def _clear(plan: Plan, store: Store, rules: Correcting) -> list[Step]:
    pairs = tuple(rules.covered(plan.pairs, tuple(store.all_pending())))
    for task in sorted({pair.task for pair in pairs}):
        store.pending[task] = store.pending[task].without(pairs)
    steps: list[Step] = [Cleared(*pair[:4], plan.batch) for pair in pairs]
    correction = Correction(plan.task, plan.batch, plan.reason, len(plan.pairs), len(plan.answers))
    return [correction, *steps]
