"""How long a task of room ``slack`` waits (docs/slack.md, sections 2 and 4).

K depends on the largest delay and on alpha, which changes at judgements only. So the delays of many
arrivals are running maxima, and the way to the next judgement is known; beyond it, it is guessed
(:mod:`spark_impl.slack.foresight`).
"""

from typing import NamedTuple

import numpy as np

from model.vocabulary import SlackConfig
from spark_impl.runtime.arrays import Floats, Ints, Records
from spark_impl.slack import quality
from spark_impl.slack.foresight import Foresight, Turn
from spark_impl.slack.held import Held
from spark_impl.slack.judgement import Judgement, Mark, Moments
from spark_impl.slack.records import Memory
from spark_impl.windows.records import Rows
from spark_impl.windows.rule import Path, Stretch


class _Moment(NamedTuple):
    """A moment of a rule, for going back to it."""

    memory: Memory
    judgement: Mark


class SlackRule:
    """The controller of one task, for one micro-batch."""

    def __init__(self, config: SlackConfig, task: int, n_keys: int, memory: Memory) -> None:
        self._config = config
        self._memory = memory
        held = Held(config, memory.held, memory.values) if config.needs_values else None
        self._judgement = Judgement(config, memory.windows, n_keys, task, held)
        self._foresight = Foresight(config, n_keys)
        self._start = 0
        self._turns: list[Turn] = []
        self._again = False

    def look(self, rows: Rows, t_max: Ints) -> None:
        """See the arrivals that come next: their delays and the moments of their values."""
        now = self._memory
        self._t_max = t_max
        delay = t_max - rows.event_time_us
        self._max_delay = np.maximum(np.maximum.accumulate(delay), now.max_delay_us)
        with np.errstate(over="ignore"):  # infinity is what the rules of coverage expect then
            squares = rows.value * rows.value
        self._moments = Moments(
            now.n + np.arange(1, len(t_max) + 1),
            _running_sum(now.s1, rows.value),
            _running_sum(now.s2, squares),
        )

    def path(self, start: int, wm_us: int) -> Path:
        """The path of the stretch that begins at ``start``; what it takes for granted is noted."""
        self._start = start
        t_max, max_delay = self._t_max[start:], self._max_delay[start:]
        if quality.is_adaptive(self._config):
            path, self._turns = self._foresight.draw(
                self._judgement, self._memory.alpha, wm_us, t_max, max_delay
            )
            return path
        slack = quality.slack_us(self._config, 1.0, max_delay)
        return Path(slack, np.maximum(np.maximum.accumulate(t_max - slack), wm_us))

    def settle(self, done: Stretch) -> int | None:
        """Judge windows, and compare with what the path took for granted."""
        before = _Moment(self._memory, self._judgement.mark())
        self._judge(done)
        if self._again:
            self._again = False
            return None
        taken = [turn for turn in self._turns if turn.at < len(done.path.wm) - 1]
        judged = self._judgement.since(before.judgement)
        wrong = self._foresight.check(taken, before.memory.alpha, judged)
        if wrong is None:
            return None
        self._memory = before.memory
        self._judgement.back_to(before.judgement)
        self._again = True
        return wrong.at + 1

    def _judge(self, done: Stretch) -> None:
        now, size = self._memory, done.size
        if size:
            here = slice(self._start, self._start + size)
            moments = Moments._make(column[here] for column in self._moments)
            n, s1, s2 = (column[-1].item() for column in moments)
            max_delay = int(self._max_delay[self._start + size - 1])
            now = now._replace(max_delay_us=max_delay, n=n, s1=s1, s2=s2)
        else:
            moments = Moments(*(np.array([each]) for each in (now.n, now.s1, now.s2)))
        self._judgement.count(done)
        law = quality.Law(now.alpha, now.err_prev, now.judged)
        law = self._judgement.judge(done.path.wm, moments, law)
        self._memory = now._replace(**law._asdict())

    def slack_us(self) -> int:
        """K with the present alpha."""
        delay = np.array([self._memory.max_delay_us])
        return int(quality.slack_us(self._config, self._memory.alpha, delay)[0])

    def memory(self, wm_us: int) -> Memory:
        """What the controller remembers."""
        held, values = self._judgement.held(wm_us)
        windows = self._judgement.remains()
        return self._memory._replace(windows=windows, held=held, values=values)

    def progress(self) -> dict[str, float]:
        """Where the controller stands."""
        return {"max_delay_us": self._memory.max_delay_us, "alpha": self._memory.alpha}

    def records(self) -> dict[str, Records]:
        """The judgements."""
        return {"judged": np.concatenate(self._judgement.judgements)}


def _running_sum(start: float, values: Floats) -> Floats:
    """start + v0, (start + v0) + v1, ...: float64 additions in arrival order."""
    sums: Floats = np.cumsum(np.concatenate(([start], values)))[1:]
    return sums
