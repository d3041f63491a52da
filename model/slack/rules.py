"""The decisions of the protocol, one function each, so that each can be replaced.

Sources: docs/slack.md, sections 2, 4 and 6. MP-K-slack (Mutschler, Philippsen 2013) for control
``max``; the hybrid processing model for ``pd``; AQ-K-slack (Ji et al., DEBS 2015) for ``aq``;
adaptive conformal inference (Gibbs, Candes 2021) for ``conformal``.

Rules of this file:

* A decision reads state and changes nothing; ``model/slack/machine.py`` acts on it.
* A control law is a pure function from one factor to the next. It sees a judged window, never a
  clock.
* The factor applied is always within [0, 1], even if ``pd`` lets alpha wind up beyond.
* A planted bug or a literal reading of a paper is this table with one entry replaced
  (``model/slack/variants.py``).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import floor
from typing import NamedTuple

from model.vocabulary import SlackConfig
from model.vocabulary.slack import ADAPTIVE_CONTROLS
from model.windows.rules import WindowRules

# -------------------------------------------------------------------------- control of the slack


class Factor(NamedTuple):
    """State of a controller."""

    alpha: float = 1.0
    err: float = 0.0
    """Error of the window judged last; only the ``pd`` laws read it."""


class Coverage(NamedTuple):
    """The coverage of one judged window."""

    n_rcv: int
    total: int
    """N, the tuples of the window known so far."""
    n_req: int

    @property
    def miss(self) -> bool:
        """Return whether the first answer contained fewer tuples than required."""
        return self.n_rcv < self.n_req


Law = Callable[[SlackConfig, Factor, Coverage], Factor]


def clip(alpha: float) -> float:
    """Return the nearest number within [0, 1]."""
    return 0.0 if alpha < 0 else 1.0 if alpha > 1 else alpha


def constant(_config: SlackConfig, _factor: Factor, _coverage: Coverage) -> Factor:
    """Return the initial factor: no feedback."""
    return Factor()


def conformal_step(config: SlackConfig, factor: Factor, coverage: Coverage) -> float:
    """Return alpha after one judgement, unclipped; a share delta/2 of misses keeps it constant."""
    return factor.alpha + config.learning_rate * (coverage.miss - config.delta / 2)


def conformal(config: SlackConfig, factor: Factor, coverage: Coverage) -> Factor:
    """Return a larger factor after a miss, and a slightly smaller one after a hit."""
    return Factor(clip(conformal_step(config, factor, coverage)))


def pd(config: SlackConfig, factor: Factor, coverage: Coverage) -> Factor:
    """Return the factor of the published law: proportional and differential on the coverage."""
    required = config.lambda_thr
    if required is None:
        required = coverage.n_req / coverage.total
    err = required - coverage.n_rcv / coverage.total
    return Factor(factor.alpha + (config.kp * err + config.kd * (err - factor.err)), err)


def pd_clamped(config: SlackConfig, factor: Factor, coverage: Coverage) -> Factor:
    """Return the factor of the published law without windup."""
    after = pd(config, factor, coverage)
    return Factor(clip(after.alpha), after.err)


LAWS: Mapping[str, Law] = {
    "fixed": constant,
    "max": constant,
    "conformal": conformal,
    "pd": pd,
    "pd-clamped": pd_clamped,
    "aq": pd,
}


def law(config: SlackConfig, factor: Factor, coverage: Coverage) -> Factor:
    """Return the next factor by the law of the query's control."""
    return LAWS[config.control](config, factor, coverage)


def recent_us(config: SlackConfig) -> int | None:
    """Return for how long a delay counts, by the clock of its task; None for ever."""
    return config.recent_us if config.control == "aq" else None


def slack_us(config: SlackConfig, alpha: float, max_delay_us: int) -> int:
    """Return K of section 2, step 3: a share of the largest delay, or the fixed setting."""
    if config.control not in LAWS:
        msg = f"there is no control {config.control!r}"
        raise ValueError(msg)
    if config.control == "fixed":
        slack = config.fixed_slack_us
    else:
        # Beyond 2^53 the product may be rounded up.
        slack = min(max_delay_us, floor(clip(alpha) * max_delay_us))
    return slack if config.max_slack_us is None else min(slack, config.max_slack_us)


def start_slack_us(config: SlackConfig, judged: int) -> int:
    """Return the least K of a task that has judged so many windows; 0 if the start is over."""
    if config.control not in ADAPTIVE_CONTROLS or judged * config.delta >= 2:
        return 0
    least = config.start_slack
    return least if config.max_slack_us is None else min(least, config.max_slack_us)


# ------------------------------------------------------------------------------------- the table


@dataclass(frozen=True, slots=True)
class Rules(WindowRules):
    """The table of decisions."""

    recent_us: Callable[[SlackConfig], int | None] = recent_us
    slack_us: Callable[[SlackConfig, float, int], int] = slack_us
    start_slack_us: Callable[[SlackConfig, int], int] = start_slack_us
    law: Law = law


RULES = Rules()
