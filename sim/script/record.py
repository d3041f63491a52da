"""Record what was seen of one worker: tuples as they were served, steps, results, how far it was.

Rules of this file:

* What a failure takes back is taken back here, too: a step counts once.
"""

from math import inf
from typing import NamedTuple

from model.vocabulary import Step
from model.vocabulary.script import END_US
from sim.kernel.recorder import Level
from sim.script.machine import Finding


class Result(NamedTuple):
    """A result, and when the worker that computes it had it."""

    stamp_us: int
    at_us: float
    is_last: bool
    """Whether it took the end of the stream to know it."""


class WorkerRecord:
    """What was seen of one worker so far."""

    __slots__ = ("_known_us", "_saved", "_start_us", "known_us", "results", "steps", "waited_us")

    def __init__(self, start_us: int) -> None:
        self.waited_us: list[float] = []
        """Of each tuple that was served: time from its arrival in the log."""
        self.steps: list[Step] = []
        self.results: list[Result] = []
        self.known_us = Level()
        """Stamp before which all results of the worker were there, since the start of the run;
        infinite when that was all of them."""
        self._start_us = start_us
        self._known_us: int | None = None
        self._saved = (0, 0, 0)

    def saw(self, finding: Finding, now_us: float) -> None:
        """Note what the worker has found out now."""
        self.steps += finding.steps
        if finding.stamp_us is not None:
            self.results.append(Result(finding.stamp_us, now_us, finding.is_last))

    def gauge(self, known_us: int, now_us: float) -> None:
        """Note how far the worker is now."""
        if known_us != self._known_us:
            self._known_us = known_us
            since_us = inf if known_us == END_US else float(known_us - self._start_us)
            self.known_us.set(since_us, now_us)

    def save(self) -> None:
        """Keep what was seen so far, whatever happens."""
        self._saved = len(self.waited_us), len(self.steps), len(self.results)

    def go_back(self) -> None:
        """Forget what was seen since it was kept the last time: it will be seen again."""
        waited, steps, results = self._saved
        del self.waited_us[waited:], self.steps[steps:], self.results[results:]
