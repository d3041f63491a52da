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
from model.windows.by_window import ByPane
from model.windows.cluster import READINGS
from model.windows.passage import Passage


class Quick:
    """Gives arrivals to a task."""

    __slots__ = ("_by_pane", "_furthest_us", "task")

    def __init__(self, task: Task) -> None:
        assert task.rules is RULES, task.rules
        limit_us = task.config.max_future_us
        self.task = task
        self._furthest_us = inf if limit_us is None else limit_us
        self._by_pane = ByPane(task.windows, task.open)

    def arrive(self, events: Sequence[Event], batch: int) -> Passage:
        """Arrivals in their order."""
        task, position = self.task, 0
        passage = Passage([], [], [], [])
        while position < len(events):
            odd = self._accept(events, position, batch, passage)
            if odd < len(events):
                n_accepted = task.n_accepted
                for step in task.arrive(events[odd], batch):
                    if isinstance(step, Clock):
                        passage.clocks.append(step)
                    else:
                        passage.steps.append((odd, step))
                if task.n_accepted > n_accepted:
                    passage.waits_us.append(task.wait_us)
                else:
                    passage.left_out.append(odd)
            position = odd + 1
        return passage

    def _accept(self, events: Sequence[Event], first: int, batch: int, passage: Passage) -> int:
        """Take arrivals from there on; the position of the first one that may be refused."""
        task, by_pane, pane_us = self.task, self._by_pane, self._by_pane.pane_us
        config, identities, cluster = task.config, task.accepted, task.cluster
        keyed, max_wait_us, reading = config.keyed, config.max_wait_us, READINGS[config.reading]
        is_recorded, enter, n = config.clocks == "arrivals", cluster.enter, len(cluster)
        t_max_us, wm_us = task.t_max_us, task.wm_us
        furthest_us, (open_us, closes_us) = self._furthest_us, task.ends_us()
        found: list[Step] = []
        position, clock = first, None
        for event in events[first:]:
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
                for values in by_pane[event_us // pane_us, key if keyed else ""]:
                    values.append(value)
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
