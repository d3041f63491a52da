"""AQ-K-slack, the rival whose buffer follows the quality of answers and recent delays.

Source: Ji et al., "Quality-driven processing of sliding window aggregates over out-of-order data
streams", DEBS 2015, as its abstract and the hybrid processing model describe it. Sampling theory
gives the required coverage, a controller steers the measured coverage to it, and the buffer follows
the delays of recent tuples, in both directions.

Rules of this file:

* The rival differs from the published law (control ``pd``) in one thing: its buffer is a share of
  the longest *recent* delay, not of the longest delay ever.
* It corrects nothing; its first answers are its last ones.
"""

from collections import deque

from model.slack.machine import Task
from model.vocabulary import Event, SlackConfig

AQ = "aq"
"""Name of the control."""


class AqTask(Task):
    """One task under AQ-K-slack; ``recent_us`` is how long a delay counts as recent."""

    __slots__ = ("_recent", "_recent_us")

    def __init__(self, config: SlackConfig, number: int, recent_us: int) -> None:
        # Delays by the clock at which they were seen; each is longer than those after it.
        self._recent: deque[tuple[int, int]] = deque()
        self._recent_us = recent_us
        super().__init__(config, number)

    def _advance_clock(self, event: Event) -> None:
        t_max_us = max(self.t_max_us, event.event_time_us)
        recent, delay_us = self._recent, t_max_us - event.event_time_us
        while recent and recent[-1][1] <= delay_us:
            recent.pop()
        recent.append((t_max_us, delay_us))
        while recent[0][0] < t_max_us - self._recent_us:
            recent.popleft()
        self.max_delay_us = recent[0][1]
        self._update_next_slack()
        super()._advance_clock(event)
