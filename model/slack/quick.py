"""A shorter way to the same: several arrivals of a task at once (docs/slack.md, section 2).

Rules of this file:

* What ``Task.arrive`` makes of the arrivals, one after the other, is what this amounts to, for
  tasks with the rules as they are specified. A property test holds it to that.
* An arrival is *uneventful* if it is accepted for the first time, closes no window, makes none due
  to be judged, is late for none, and is not delayed more than any before. Then the slack stays what
  it was, and nothing is to be done but to count it. Any other goes to ``Task.arrive``.
"""

from collections.abc import Sequence
from math import inf
from sys import float_info

from model.slack.machine import Task
from model.slack.rules import RULES
from model.vocabulary import Event
from model.windows.by_window import ByPane
from model.windows.passage import Passage


class Quick:
    """Gives arrivals to a task."""

    __slots__ = (
        "_before_us",
        "_by_pane",
        "_furthest_us",
        "_least",
        "_open_us",
        "_slack_us",
        "task",
    )

    def __init__(self, task: Task) -> None:
        assert task.rules is RULES, task.rules
        config = task.config
        self.task = task
        self._least = 0.0 if config.needs_positive_values else -float_info.max
        self._furthest_us = inf if config.max_future_us is None else config.max_future_us
        self._by_pane = ByPane(task.windows, task.open)
        self._note()

    def arrive(self, events: Sequence[Event], batch: int) -> Passage:
        """Arrivals in their order."""
        task, position = self.task, 0
        passage = Passage([], [], [], [])
        while position < len(events):
            eventful = self._count(events, position)
            passage.waits_us.extend([task.slack_us] * (eventful - position))
            if eventful < len(events):
                n_accepted = task.n_accepted
                for step in task.arrive(events[eventful], batch):
                    passage.steps.append((eventful, step))
                if task.n_accepted > n_accepted:
                    passage.waits_us.append(task.slack_us)
                else:
                    passage.left_out.append(eventful)
                self._note()
            position = eventful + 1
        return passage

    def _note(self) -> None:
        """What makes an arrival uneventful, until the next one that is not."""
        self._slack_us = self.task.next_slack_us
        self._open_us, acts_us = self.task.ends_us()
        self._before_us = acts_us + self._slack_us

    def _count(self, events: Sequence[Event], position: int) -> int:
        """Take uneventful arrivals from there on; the position of the first one that is not."""
        task, by_pane, pane_us = self.task, self._by_pane, self._by_pane.pane_us
        least, furthest_us, keyed = self._least, self._furthest_us, task.config.keyed
        identities, max_delay_us, t_max_us = task.accepted, task.max_delay_us, task.t_max_us
        total, squares, slack_us = task.total, task.squares, self._slack_us
        open_us, before_us = self._open_us, self._before_us
        if t_max_us >= before_us:
            return position
        first = position
        for _, source_id, key, event_us, value, arrival_us, _ in events[position:]:
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
            for values in by_pane[event_us // pane_us, key if keyed else ""]:
                values.append(value)
            position += 1
        if position > first:
            task.t_max_us, task.total, task.squares = t_max_us, total, squares
            task.n_accepted += position - first
            task.slack_us = slack_us
            task.wm_us = max(task.wm_us, t_max_us - slack_us)
        return position
