"""A shorter way to the same: several arrivals of a task at once (docs/slack.md, section 2).

Rules of this file:

* What ``Task.arrive`` makes of the arrivals, one after the other, is what this amounts to, for
  tasks with the rules as they are specified. A property test holds it to that.
* An arrival is *uneventful* if it is accepted for the first time, closes no window, makes none due
  to be judged, is late for none, and is not delayed more than any before. Then the slack stays what
  it was, and nothing is to be done but to count it. Any other goes to ``Task.arrive``.
"""

from collections.abc import Sequence
from itertools import repeat
from math import inf
from sys import float_info

from model.slack.machine import Task
from model.slack.rules import RULES
from model.vocabulary import Event
from model.windows.by_window import Panes
from model.windows.passage import Passage


class Quick:
    """Gives a task that has seen nothing all of its arrivals."""

    __slots__ = (
        "_before_us",
        "_events",
        "_furthest_us",
        "_least",
        "_open_us",
        "_panes",
        "_position",
        "_slack_us",
        "passage",
        "task",
    )

    def __init__(self, task: Task, events: Sequence[Event]) -> None:
        assert task.rules is RULES, task.rules
        assert not task.n_accepted, task.n_accepted
        config = task.config
        self.task = task
        self.passage = Passage([], [], [], [])
        """What has happened so far."""
        self._events, self._position = events, 0
        self._least = 0.0 if config.needs_positive_values else -float_info.max
        self._furthest_us = inf if config.max_future_us is None else config.max_future_us
        task.open = self._panes = Panes(task.windows, task.first_open)
        self._note()

    def until(self, end: int, batch: int) -> None:
        """Arrivals of a batch, up to that position."""
        task, passage = self.task, self.passage
        while self._position < end:
            if task.t_max_us < self._before_us:
                self._count(end)
            position = self._position
            if position < end:
                n_accepted = task.n_accepted
                for step in task.arrive(self._events[position], batch):
                    passage.steps.append((position, step))
                if task.n_accepted > n_accepted:
                    passage.waits_us.append(task.slack_us)
                else:
                    passage.left_out.append(position)
                self._position = position + 1
                self._note()

    def _note(self) -> None:
        """What makes an arrival uneventful, until the next one that is not."""
        self._slack_us = self.task.next_slack_us
        self._open_us, acts_us = self.task.ends_us()
        self._before_us = acts_us + self._slack_us

    def _count(self, end: int) -> None:
        """Take uneventful arrivals up to that position."""
        task, panes, pane_us = self.task, self._panes, self._panes.pane_us
        least, furthest_us, keyed = self._least, self._furthest_us, task.config.keyed
        identities, max_delay_us, t_max_us = task.accepted, task.max_delay_us, task.t_max_us
        total, squares, slack_us = task.total, task.squares, self._slack_us
        open_us, before_us = self._open_us, self._before_us
        first = position = self._position
        for _, source_id, key, event_us, value, arrival_us, _ in self._events[first:end]:
            if (
                not open_us <= event_us < before_us
                or t_max_us - event_us > max_delay_us
                or not least <= value < inf
                or event_us - arrival_us > furthest_us
                or source_id in identities
            ):
                break
            if event_us > t_max_us:
                t_max_us = event_us
            identities[source_id] = event_us
            total += value
            squares += value * value
            panes[event_us // pane_us][key if keyed else ""].append(value)
            position += 1
        if position > first:
            task.t_max_us, task.total, task.squares = t_max_us, total, squares
            task.n_accepted += position - first
            task.slack_us = slack_us
            task.wm_us = max(task.wm_us, t_max_us - slack_us)
            self.passage.waits_us.extend(repeat(slack_us, position - first))
            self._position = position
