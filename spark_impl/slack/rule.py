"""The rule of room ``slack``: how long a task waits (docs/slack.md, sections 2 and 4).

The slack K depends on the largest delay and on alpha; at the start it has a least value. Alpha and
the end of the start come with judgements only, so K is known for all arrivals up to the next
judgement. Under ``aq`` it also falls between them, so only the watermark is taken to be monotone.
Beyond a judgement the path depends on its misses, which are not known yet. Misses are rare, so
:class:`Foresight` guesses that the next window fares as the last one did. A guess costs one search
per judgement and avoids working in small portions.
"""

from typing import NamedTuple

import numpy as np

from model.vocabulary import SlackConfig
from spark_impl.runtime.arrays import Bools, Floats, Ints, Records
from spark_impl.slack import control_laws
from spark_impl.slack.delays import Kept, delays
from spark_impl.slack.judgement import JUDGED, WINDOW, Judgement, Moments
from spark_impl.slack.retained_values import RETAINED
from spark_impl.windows.records import Rows, join_records
from spark_impl.windows.room import Path, Rule, Stretch

_FIRST_LOOK = 64
"""Number of arrivals in the first search for the next judgement."""
_FAR = 100
"""Most windows that one guessed judgement may cover; more mean a jump ahead in event time."""


class Memory(NamedTuple):
    """The state of a task's controller between two micro-batches."""

    delays: Kept = 0
    alpha: float = 1.0
    err_prev: float = 0.0
    n: int = 0
    """Number of accepted values; ``s1`` is their sum, ``s2`` the sum of their squares."""
    s1: float = 0.0
    s2: float = 0.0
    judged: int = 0
    """Number of judgements so far."""
    windows: Records = np.empty(0, WINDOW)
    retained: Records = np.empty(0, RETAINED)
    """Values of unjudged windows; empty unless ``config.needs_values``."""


class Turn(NamedTuple):
    """A guessed judgement on a path."""

    at: int
    """Position on the path."""
    unjudged_from: int
    """First window that this judgement leaves unjudged."""
    alpha: float
    """Factor of the path behind it."""


class Foresight:
    """Draws paths across guessed judgements and learns from the actual ones."""

    def __init__(self, config: SlackConfig, n_keys: int) -> None:
        self._config = config
        self._look = _FIRST_LOOK
        self._guesses = config.control == "conformal"
        self._turns = 1
        self._misses: Bools = np.zeros(n_keys, np.bool_)

    def draw(
        self, judgement: Judgement, memory: Memory, wm_us: int, t_max: Ints, max_delay: Ints
    ) -> tuple[Path, list[Turn]]:
        """Return the path of some arrivals and the judgements that it assumes.

        The path starts from the memory's alpha and the watermark ``wm_us``. It ends at a judgement,
        or with the arrivals. At the start no judgement is guessed, because it may end the start.
        """
        alpha = memory.alpha
        least_us = control_laws.least_slack_us(self._config, memory.judged)
        wm, at = wm_us, 0
        parts: list[Ints] = []
        turns: list[Turn] = []
        while True:
            goal_us = judgement.next_us(wm)
            slack, hit = self._until(goal_us, alpha, least_us, t_max[at:], max_delay[at:])
            parts.append(slack)
            at += len(slack)
            if not hit or at == len(t_max) or len(parts) == self._turns or least_us:
                break
            before, wm = wm, int(t_max[at - 1] - slack[-1])
            first, last = judgement.unjudged_from(before), judgement.unjudged_from(wm)
            if last - first > _FAR:
                break
            misses = np.tile(self._misses, last - first)
            alpha = control_laws.conformal_path(self._config, alpha, misses)[-1]
            turns.append(Turn(at - 1, last, alpha))
        slack = np.concatenate(parts)
        return Path(slack, np.maximum(np.maximum.accumulate(t_max[:at] - slack), wm_us)), turns

    def check(self, turns: list[Turn], alpha: float, judged: Records) -> Turn | None:
        """Return the first wrongly guessed turn, None if all guesses were right.

        ``alpha`` is the factor at the beginning of the path, ``judged`` the actual judgements.
        """
        alphas = np.append(judged["alpha"], alpha)
        judged_before = np.searchsorted(judged["j"], [turn.unjudged_from for turn in turns])
        wrong = np.flatnonzero(alphas[judged_before - 1] != [turn.alpha for turn in turns])
        if not len(wrong):
            if self._guesses and len(turns) + 1 == self._turns:
                self._turns *= 2
            self._learn(judged)
            return None
        first = int(wrong[0])
        self._turns = first + 1
        self._learn(judged[: judged_before[first]])
        return turns[first]

    def _learn(self, judged: Records) -> None:
        if len(judged):
            self._misses = judged["miss"][judged["j"] == judged["j"][-1]]

    def _until(
        self, wm: int, alpha: float, least_us: int, t_max: Ints, max_delay: Ints
    ) -> tuple[Ints, bool]:
        """Return K up to the arrival that moves the watermark to ``wm``, and whether one does."""
        end = 2 * self._look
        while True:  # search more and more arrivals
            slack = control_laws.slack_us(self._config, alpha, max_delay[:end])
            slack = np.maximum(slack, least_us)
            reached = t_max[:end] - slack >= wm
            hit = int(reached.argmax())
            if reached[hit] or end >= len(t_max):
                break
            end *= 4
        is_reached = bool(reached[hit])
        if is_reached:
            slack = slack[: hit + 1]
        self._look = max(len(slack), _FIRST_LOOK)
        return slack, is_reached


class SlackRule(Rule):
    """The controller of one task during one micro-batch."""

    def __init__(self, config: SlackConfig, task: int, n_keys: int, memory: Memory) -> None:
        self._config = config
        self._memory = memory
        self._delays = delays(config, memory.delays)
        self._judgement = Judgement(config, memory.windows, n_keys, memory.retained)
        self._foresight = Foresight(config, n_keys)
        self._turns: list[Turn] = []
        self._again = False

    def look(self, rows: Rows, t_max: Ints) -> None:
        """Compute the delays of the next arrivals and the moments of their values."""
        now = self._memory
        self._t_max = t_max
        self._max_delay = self._delays.look(t_max, t_max - rows.event_time_us)
        with np.errstate(over="ignore"):  # the coverage rules expect infinity then
            squares = rows.value * rows.value
        self._moments = Moments(
            now.n + np.arange(1, len(t_max) + 1),
            _running_sum(now.s1, rows.value),
            _running_sum(now.s2, squares),
        )

    def path(self, start: int, wm_us: int) -> Path:
        """Return the path of the stretch that begins at ``start``, and note its guesses."""
        self._start = start
        t_max, max_delay = self._t_max[start:], self._max_delay[start:]
        if control_laws.is_adaptive(self._config):
            path, self._turns = self._foresight.draw(
                self._judgement, self._memory, wm_us, t_max, max_delay
            )
            return path
        slack = control_laws.slack_us(self._config, self._memory.alpha, max_delay)
        return Path(slack, np.maximum(np.maximum.accumulate(t_max - slack), wm_us))

    def settle(self, done: Stretch) -> int | None:
        """Judge windows and compare the judgements with the guesses of the path."""
        before, mark = self._memory, self._judgement.mark()
        self._judge(done)
        if self._again:
            self._again = False
            return None
        passed = [turn for turn in self._turns if turn.at < len(done.path.wm) - 1]
        judged = self._judgement.since(mark)
        wrong = self._foresight.check(passed, before.alpha, judged)
        if wrong is None:
            return None
        self._memory = before
        self._judgement.undo_to(mark)
        self._again = True
        return wrong.at + 1

    def _judge(self, done: Stretch) -> None:
        now, size = self._memory, done.size
        if size:
            here = slice(self._start, self._start + size)
            moments = Moments._make(column[here] for column in self._moments)
            n, s1, s2 = (column[-1].item() for column in moments)
            now = now._replace(n=n, s1=s1, s2=s2)
            self._delays.settle(here.stop)
        else:
            moments = Moments(*(np.array([each]) for each in (now.n, now.s1, now.s2)))
        self._judgement.count(done)
        law = control_laws.Law(now.alpha, now.err_prev, now.judged)
        law = self._judgement.judge(done.path.wm, moments, law)
        self._memory = now._replace(**law._asdict())

    def slack_us(self) -> int:
        """Return K with the present alpha."""
        now = self._memory
        largest_us = np.array([self._delays.largest_us])
        [slack] = control_laws.slack_us(self._config, now.alpha, largest_us)
        return max(int(slack), control_laws.least_slack_us(self._config, now.judged))

    def memory(self) -> Memory:
        """Return the controller's state."""
        windows, retained = self._judgement.unjudged(), self._judgement.retained()
        kept = self._delays.kept()
        return self._memory._replace(delays=kept, windows=windows, retained=retained)

    def progress(self) -> dict[str, float]:
        """Return the largest delay and alpha."""
        return {"max_delay_us": self._delays.largest_us, "alpha": self._memory.alpha}

    def records(self) -> dict[str, Records]:
        """Return the judgements of this micro-batch."""
        return {"judged": join_records(JUDGED, self._judgement.judgements)}


def _running_sum(start: float, values: Floats) -> Floats:
    """Return start + v0, (start + v0) + v1, ...: float64 additions in arrival order."""
    sums: Floats = np.cumsum(np.concatenate(([start], values)))[1:]
    return sums
