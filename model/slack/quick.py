"""A shorter way to the same: several arrivals of a task at once (docs/slack.md, section 2).

Rules of this file:

* What ``Task.arrive`` makes of the arrivals, one after the other, is what this amounts to, for
  tasks with the rules as they are specified. A property test holds it to that.
* An arrival is *odd* if it may be refused. How t_max, the largest delay and the sums go on until
  the next odd one is known before anything is decided: that is looked up, not counted.
* An arrival is *eventful* if it is odd, closes a window, makes one due to be judged, is late for
  one, or is delayed more than any before. At any other the slack stays what it was, and nothing is
  to be done but to keep its value.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat
from math import isfinite
from operator import mul, sub
from typing import Any

from model.slack.machine import Task
from model.slack.rules import RULES
from model.vocabulary import Event, SlackConfig
from model.windows.by_window import Panes
from model.windows.passage import Passage


class Quick:
    """Gives a task that has seen nothing all of its arrivals."""

    __slots__ = (
        "_event_us",
        "_eventful",
        "_events",
        "_identities",
        "_kept",
        "_keys",
        "_odd",
        "_pane",
        "_panes",
        "_position",
        "_rises",
        "_squares",
        "_t_max_us",
        "_totals",
        "_values",
        "passage",
        "task",
    )

    def __init__(self, task: Task, events: Sequence[Event]) -> None:
        assert task.rules is RULES, task.rules
        assert not task.n_accepted, task.n_accepted
        self.task = task
        self.passage = Passage([], [], [], [])
        """What has happened so far."""
        self._events = events
        self._position = self._kept = 0
        task.open = self._panes = Panes(task.windows, task.first_open)
        columns: Iterable[tuple[Any, ...]]
        columns = zip(*events, strict=True) if events else [()] * len(Event._fields)
        _, identities, keys, event_us, values, _, _ = columns
        self._event_us: Sequence[int] = event_us
        self._values: Sequence[float] = values
        self._identities: Sequence[int] = identities
        self._pane = [each // self._panes.pane_us for each in event_us]
        self._keys: Sequence[str] = keys if task.config.keyed else [""] * len(events)
        odd = refused(task.config, events, values) | repeated(identities)
        self._odd = [len(events), *sorted(odd, reverse=True)]
        """Positions to come, the next one last."""
        # Of these, what is found at a position was so before that arrival.
        self._t_max_us: list[int] = [0] * (len(events) + 1)
        self._totals: list[float] = [0.0] * (len(events) + 1)
        self._squares: list[float] = [0.0] * (len(events) + 1)
        self._look_ahead()
        self._find_eventful()

    def until(self, end: int, batch: int) -> None:
        """Arrivals of a batch, up to that position.

        Then the task is up to date, but for the values in open windows, which are at the end.
        """
        while self._eventful < end:
            self._count(self._eventful)
            self._keep()
            self._arrive(batch)
        self._count(end)
        if end == len(self._events):
            self._keep()

    def _look_ahead(self) -> None:
        """From here to the next odd arrival."""
        task, begin, end = self.task, self._position, self._odd[-1]
        event_us, values = self._event_us[begin:end], self._values[begin:end]
        t_max_us = list(accumulate(event_us, max, initial=task.t_max_us))
        delays_us = map(sub, t_max_us[1:], event_us)
        longest_us = list(accumulate(delays_us, max, initial=task.max_delay_us))
        rises, rise = [], bisect_right(longest_us, longest_us[0])
        while rise < len(longest_us):
            rises.append(begin + rise - 1)
            rise = bisect_right(longest_us, longest_us[rise], rise)
        self._rises = [len(self._events), *reversed(rises)]
        """Arrivals delayed more than any before, the next one last."""
        self._t_max_us[begin : end + 1] = t_max_us
        self._totals[begin : end + 1] = accumulate(values, initial=task.total)
        squares = map(mul, values, values)
        self._squares[begin : end + 1] = accumulate(squares, initial=task.squares)

    def _find_eventful(self) -> None:
        """The next eventful arrival from here."""
        task, first, event_us = self.task, self._position, self._event_us
        open_us, acts_us = task.ends_us()
        stop = min(self._odd[-1], self._rises[-1])
        before_us = acts_us + task.next_slack_us
        stop = bisect_left(self._t_max_us, before_us, first + 1, stop + 1) - 1
        if stop > first and min(event_us[first:stop]) < open_us:
            stop = next(n for n in range(first, stop) if event_us[n] < open_us)
        self._eventful = stop

    def _count(self, end: int) -> None:
        """Take the arrivals until there, none of which is eventful."""
        n = end - self._position
        if n > 0:
            task, slack_us, t_max_us = self.task, self.task.next_slack_us, self._t_max_us[end]
            task.t_max_us = t_max_us
            task.total, task.squares = self._totals[end], self._squares[end]
            task.n_accepted += n
            task.slack_us = slack_us
            task.wm_us = max(task.wm_us, t_max_us - slack_us)
            self.passage.waits_us.extend(repeat(slack_us, n))
            self._position = end

    def _keep(self) -> None:
        """Put what has been counted into its windows."""
        begin, end, panes = self._kept, self._position, self._panes
        self.task.accepted.update(
            zip(self._identities[begin:end], self._event_us[begin:end], strict=True)
        )
        columns = self._pane[begin:end], self._keys[begin:end], self._values[begin:end]
        for pane, key, value in zip(*columns, strict=True):
            panes[pane][key].append(value)
        self._kept = self._position

    def _arrive(self, batch: int) -> None:
        """Take the eventful arrival that is next."""
        position = self._position
        task, passage, event = self.task, self.passage, self._events[position]
        n_accepted, is_odd = task.n_accepted, position == self._odd[-1]
        steps = task.arrive(event, batch) if is_odd else task.accept(event, batch)
        passage.steps.extend([(position, step) for step in steps])
        if task.n_accepted > n_accepted:
            passage.waits_us.append(task.slack_us)
        else:
            passage.left_out.append(position)
        self._position = self._kept = position + 1
        if is_odd:
            self._odd.pop()
            self._look_ahead()
        elif position == self._rises[-1]:
            self._rises.pop()
        self._find_eventful()


def refused(config: SlackConfig, events: Sequence[Event], values: Sequence[float]) -> set[int]:
    """Positions of arrivals that take part in nothing."""
    least = min(values, default=0.0)
    is_fine = all(map(isfinite, values)) and (least >= 0 or not config.needs_positive_values)
    if is_fine and config.max_future_us is None:
        return set()
    return {n for n, event in enumerate(events) if RULES.reject(config, event) is not None}


def repeated(identities: Sequence[int]) -> set[int]:
    """Positions at which there is something that was there before."""
    if len(set(identities)) == len(identities):
        return set()
    first: dict[int, int] = {}
    return {n for n, each in enumerate(identities) if first.setdefault(each, n) != n}
