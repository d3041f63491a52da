"""A shorter way to the same: several arrivals of a task at once (docs/watermark.md, section 3).

Rules of this file:

* What ``Task.arrive`` makes of the arrivals, one after the other, is what this amounts to, for
  tasks with the rules as they are specified. A property test holds it to that.
* An arrival that may be refused goes to ``Task.arrive``. Windows are looked at only where the
  watermark passes the end of one, or where an arrival is late for one.
"""

from collections.abc import Sequence
from math import inf, isfinite

from model.vocabulary import Event, Step
from model.vocabulary.watermark import Clock
from model.watermark.machine import Task
from model.watermark.rules import RULES
from model.windows.by_window import Panes
from model.windows.cluster import READINGS
from model.windows.passage import Passage


class Quick:
    """Gives a task that has seen nothing all of its arrivals."""

    __slots__ = ("_events", "_furthest_us", "_panes", "_position", "passage", "task")

    def __init__(self, task: Task, events: Sequence[Event]) -> None:
        assert task.rules is RULES, task.rules
        assert not task.n_accepted, task.n_accepted
        limit_us = task.config.max_future_us
        self.task = task
        self.passage = Passage([], [], [], [])
        """What has happened so far."""
        self._events, self._position = events, 0
        self._furthest_us = inf if limit_us is None else limit_us
        task.open = self._panes = Panes(task.windows, task.first_open)

    def until(self, end: int, batch: int) -> None:
        """Arrivals of a batch, up to that position."""
        task, passage = self.task, self.passage
        while self._position < end:
            odd = self._accept(end, batch)
            if odd < end:
                n_accepted = task.n_accepted
                for step in task.arrive(self._events[odd], batch):
                    if isinstance(step, Clock):
                        passage.clocks.append(step)
                    else:
                        passage.steps.append((odd, step))
                if task.n_accepted > n_accepted:
                    passage.waits_us.append(task.wait_us)
                else:
                    passage.left_out.append(odd)
            self._position = odd + 1 if odd < end else end

    def _accept(self, end: int, batch: int) -> int:
        """Take arrivals until there; the position of the first one that may be refused."""
        task, panes, pane_us, passage = self.task, self._panes, self._panes.pane_us, self.passage
        config, identities, cluster = task.config, task.accepted, task.cluster
        keyed, max_wait_us, reading = config.keyed, config.max_wait_us, READINGS[config.reading]
        is_recorded, enter, n = config.clocks == "arrivals", cluster.enter, len(cluster)
        t_max_us, wm_us = task.t_max_us, task.wm_us
        furthest_us, (open_us, closes_us) = self._furthest_us, task.ends_us()
        found: list[Step] = []
        first = position = self._position
        clock = None
        for event in self._events[first:end]:
            seq, source_id, key, event_us, value, arrival_us, _ = event
            if (
                source_id in identities
                or not isfinite(value)
                or event_us > arrival_us + furthest_us
            ):
                break
            identities[source_id] = event_us
            t_max_us = event_us if event_us > t_max_us else t_max_us
            enter(event_us)
            n = n + 1 if n < config.k else n
            wait_us = reading(max_wait_us, cluster.inv, n * (n - 1) // 2)
            wm_us = t_max_us - wait_us if t_max_us - wait_us > wm_us else wm_us
            clock = Clock(task.number, seq, batch, t_max_us, cluster.inv, wait_us, wm_us)
            if is_recorded:
                passage.clocks.append(clock)
            passage.waits_us.append(wait_us)
            if wm_us >= closes_us:
                task.wait_us, task.wm_us = wait_us, wm_us
                task.close(batch, found)
                open_us, closes_us = task.ends_us()
            if event_us >= open_us:
                panes[event_us // pane_us][key if keyed else ""].append(value)
            else:
                task.route(event, batch, found)
            if found:
                passage.steps.extend([(position, step) for step in found])
                found.clear()
            position += 1
        if clock is not None:
            task.t_max_us, task.wait_us, task.wm_us = t_max_us, clock.wait_us, wm_us
            task.n_accepted += position - first
            task.last_clock = [] if is_recorded else [clock]
        return position
