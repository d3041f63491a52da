"""The path of the watermark over many judgements at once, on a guess that is checked afterwards.

Alpha changes at every judgement, so the path beyond one is known only when its misses are. Where
misses are rare they are easily guessed: the next window fares as the last one did. What the guess
costs is one search a judgement; what it saves is the work on windows in small portions.
"""

from typing import NamedTuple

import numpy as np

from model.vocabulary import SlackConfig
from spark_impl.runtime.arrays import Bools, Ints, Records
from spark_impl.slack import quality
from spark_impl.slack.judgement import Judgement
from spark_impl.windows.rule import Path

_FIRST_LOOK = 64
_FAR = 100
"""Windows at once beyond which a judgement is not guessed: the tuples have jumped ahead in time."""


class Turn(NamedTuple):
    """A judgement on a path, and the factor that the path has after it."""

    at: int
    """Position on the path."""
    unjudged_from: int
    """The first window that is not judged then."""
    alpha: float


class Foresight:
    """Draws paths; learns from what the judgements on them turn out to be."""

    def __init__(self, config: SlackConfig, n_keys: int) -> None:
        self._config = config
        self._look = _FIRST_LOOK
        self._guesses = config.control == "conformal"
        self._turns = 1
        self._misses: Bools = np.zeros(n_keys, np.bool_)

    def draw(
        self, judgement: Judgement, alpha: float, wm_us: int, t_max: Ints, max_delay: Ints
    ) -> tuple[Path, list[Turn]]:
        """The path of some arrivals, and the turns that it takes for granted.

        It begins with a factor and a watermark, and ends at a judgement or with the arrivals.
        """
        wm, at = wm_us, 0
        parts: list[Ints] = []
        turns: list[Turn] = []
        while True:
            slack, hit = self._until(judgement.next_us(wm), alpha, t_max[at:], max_delay[at:])
            parts.append(slack)
            at += len(slack)
            if not hit or at == len(t_max) or len(parts) == self._turns:
                break
            before, wm = wm, int(t_max[at - 1] - slack[-1])
            first, last = judgement.unjudged_from(np.array([before, wm])).tolist()
            if last - first > _FAR:
                break
            misses = np.tile(self._misses, last - first)
            alpha = quality.conformal(self._config, alpha, misses)[-1]
            turns.append(Turn(at - 1, last, alpha))
        slack = np.concatenate(parts)
        return Path(slack, np.maximum(np.maximum.accumulate(t_max[:at] - slack), wm_us)), turns

    def check(self, turns: list[Turn], alpha: float, judged: Records) -> Turn | None:
        """The first turn that was guessed wrong, given what was judged on the path.

        ``alpha`` is the factor at the beginning of the path.
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

    def _until(self, wm: int, alpha: float, t_max: Ints, max_delay: Ints) -> tuple[Ints, bool]:
        """K of the arrivals up to the one at which the watermark reaches ``wm``.

        Also whether there is one.
        """
        end = 2 * self._look
        while True:  # look at more and more arrivals
            slack = quality.slack_us(self._config, alpha, max_delay[:end])
            reached = t_max[:end] - slack >= wm
            hit = int(reached.argmax())
            if reached[hit] or end >= len(t_max):
                break
            end *= 4
        found = bool(reached[hit])
        if found:
            slack = slack[: hit + 1]
        self._look = max(len(slack), _FIRST_LOOK)
        return slack, found
