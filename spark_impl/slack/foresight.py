"""The path of the watermark over many judgements at once, on a guess that is checked afterwards.

Alpha changes at every judgement, so the path beyond one is known only when its misses are. Where
misses are rare they are easily guessed: the next window fares as the last one did. What the guess
costs is one search a judgement; what it saves is the work on windows in small portions.
"""

from typing import NamedTuple

import numpy as np

from model.vocabulary import SlackConfig
from spark_impl.slack import quality
from spark_impl.slack.arrivals import Plan
from spark_impl.slack.ledger import Ledger, Path
from spark_impl.slack.records import Bools, Clock, Ints, Records

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
        self, ledger: Ledger, clock: Clock, chosen: Plan, start: int
    ) -> tuple[Path, list[Turn]]:
        """The path that begins at ``start`` of a plan, and the turns that it takes for granted.

        It ends at a judgement, or with the plan.
        """
        alpha, wm, at = clock.alpha, clock.wm_us, start
        parts: list[Ints] = []
        turns: list[Turn] = []
        while True:
            slack, hit = self._until(ledger.next_judgement_us(wm), alpha, chosen, at)
            parts.append(slack)
            at += len(slack)
            if not hit or at == chosen.size or len(parts) == self._turns:
                break
            before, wm = wm, int(chosen.t_max[at - 1] - slack[-1])
            first, last = ledger.unjudged_from(np.array([before, wm])).tolist()
            if last - first > _FAR:
                break
            misses = np.tile(self._misses, last - first)
            alpha = quality.conformal(self._config, alpha, misses)[-1]
            turns.append(Turn(at - 1 - start, last, alpha))
        slack = np.concatenate(parts)
        here = slice(start, at)
        path_wm = np.maximum(np.maximum.accumulate(chosen.t_max[here] - slack), clock.wm_us)
        path = Path(slack, path_wm, chosen.n[here], chosen.s1[here], chosen.s2[here])
        return path, turns

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

    def _until(self, wm: int, alpha: float, chosen: Plan, start: int) -> tuple[Ints, bool]:
        """K of the arrivals from ``start`` to the one at which the watermark reaches ``wm``.

        Also whether there is one.
        """
        end = start + 2 * self._look
        while True:  # look at more and more arrivals
            slack = quality.slack_us(self._config, alpha, chosen.max_delay[start:end])
            reached = chosen.t_max[start:end] - slack >= wm
            hit = int(reached.argmax())
            if reached[hit] or end >= chosen.size:
                break
            end += 3 * (end - start)
        found = bool(reached[hit])
        if found:
            slack = slack[: hit + 1]
        self._look = max(len(slack), _FIRST_LOOK)
        return slack, found
