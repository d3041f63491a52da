"""The machine of the room: senders that route and learn, instances that aggregate.

Rules of this file:

* It only carries things from one part to the next: routers choose, summaries count, rules make
  tables, instances aggregate.
* A sender routes its tuples one by one or several at once, which is the same. What it learns of a
  micro-batch enters its summary as a whole, when its part of the micro-batch ends.
* All that senders know are values, and the same tuples make the same of them: routes depend on no
  restart and on no replay.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import NamedTuple

from model.grouping import router
from model.grouping.aggregate import aggregate, merge
from model.grouping.router import State
from model.grouping.rules import RULES, Learnt, entered, first_table, rebalance
from model.grouping.summary import Summary
from model.grouping.table import Rules, Table
from model.vocabulary import Event, GroupingConfig, Step
from model.vocabulary.grouping import REASON_NOT_FINITE, Answer, Heavy, Partial, Rejected


class Saved(NamedTuple):
    """What all senders hold: a value."""

    table: Table
    tuples: int
    """Tuples of the window that were routed."""
    states: tuple[State, ...]
    summaries: tuple[Summary, ...]
    parts: tuple[tuple[str, ...], ...]
    """Keys that each sender has routed of the micro-batch that it is in."""


class Machine:
    """The senders of a stream, and the instances behind them."""

    def __init__(self, config: GroupingConfig, rules: Rules = RULES) -> None:
        self.config = config
        self._table = first_table(config, rules)
        self._tuples = 0
        self._states = [router.initial(config, sender) for sender in range(config.senders)]
        self._summaries: list[Summary] = [{} for _ in self._states]
        self._parts: list[list[str]] = [[] for _ in self._states]
        self._got: dict[tuple[int, int, str], list[tuple[int, float]]] = defaultdict(list)
        """Numbers and values of the tuples that an instance got, by window, instance and key."""

    # ------------------------------------------------------------------------------- the senders

    def route(self, sender: int, key: str) -> int:
        """Route the next tuple of a sender; return its instance."""
        instance, self._states[sender] = router.route(self._table, self._states[sender], key)
        self._parts[sender].append(key)
        self._tuples += 1
        return instance

    def route_all(self, sender: int, keys: Sequence[str]) -> Sequence[int]:
        """Route several tuples of a sender: the same as :meth:`route` for each of them."""
        where, self._states[sender] = router.route_all(self._table, self._states[sender], keys)
        self._parts[sender] += keys
        self._tuples += len(keys)
        return where

    def end_batch(self, sender: int) -> None:
        """End a sender's part of a micro-batch: the keys of it enter the sender's summary."""
        keys, self._parts[sender] = self._parts[sender], []
        if keys:
            before = self._summaries[sender]
            self._summaries[sender] = entered(self.config, self._table.rules, before, keys)

    def is_full(self, tuples: int) -> bool:
        """Say whether a micro-batch ends the window, at whose end it has so many tuples."""
        return tuples >= self.config.window_tuples

    def rebalance(self, times_us: tuple[int, ...]) -> Sequence[Heavy]:
        """Begin a window in which a tuple takes these times; return its heavy keys."""
        buckets = [state.buckets for state in self._states]
        learnt = Learnt(self._tuples, self._summaries, buckets)
        self._table = rebalance(self._table, learnt, times_us)
        self._states = [router.started(self._table, state) for state in self._states]
        self._summaries = [{} for _ in self._states]
        self._tuples = 0
        return list(_heavy_keys(self._table))

    def saved(self) -> Saved:
        """Return what the senders hold; instances keep what they have, whatever happens."""
        parts = tuple(map(tuple, self._parts))
        return Saved(self._table, self._tuples, tuple(self._states), tuple(self._summaries), parts)

    def restore(self, saved: object) -> None:
        """Let the senders go on from what :meth:`saved` returned."""
        assert isinstance(saved, Saved)
        self._table, self._tuples, states, summaries, parts = saved
        self._states, self._summaries = list(states), list(summaries)
        self._parts = list(map(list, parts))

    # ----------------------------------------------------------------------------- the instances

    def serve(self, instance: int, window: int, event: Event) -> Sequence[Step]:
        """Let an instance take in a tuple of a window; return what can be seen of it at once."""
        if not isfinite(event.value):
            return (Rejected(event.seq, REASON_NOT_FINITE),)
        self._got[window, instance, event.key].append((event.seq, event.value))
        return ()

    def results(self) -> Iterator[Step]:
        """Yield the partial aggregates, and the answers that they merge to.

        Values are added in order of arrival, in whichever order they were served.
        """
        top = self.config.top
        partials = defaultdict(list)
        for (window, instance, key), got in sorted(self._got.items()):
            part = aggregate([value for _, value in sorted(got)], top)
            partials[window, key].append(part)
            yield Partial(window, instance, key, *part[:4])
        for (window, key), parts in partials.items():
            answer = merge(parts, top)
            yield Answer(window, key, *answer[:4], len(answer.distinct), answer.top)


def _heavy_keys(table: Table) -> Iterator[Heavy]:
    for key, (counted, error) in table.heavy.items():
        candidates = tuple(sorted(table.candidates(key)))
        yield Heavy(table.window, key, counted, error, table.tuples, candidates)
