"""Control of the slack: from a judged window to the factor alpha (docs/slack.md, sections 2 and 4).

Source: MP-K-slack (Mutschler, Philippsen 2013) for ``max``; the hybrid processing model for
``pd``; adaptive conformal inference (Gibbs, Candes 2021) for ``conformal``.

Rules of this file:

* A law is a pure function from one factor to the next. It sees a judged window, never a clock.
* The factor applied is always within [0, 1], even where ``pd`` lets alpha wind up beyond.
"""

from collections.abc import Callable, Mapping
from math import floor
from typing import NamedTuple

from model.vocabulary import SlackConfig


class Factor(NamedTuple):
    """State of a controller."""

    alpha: float = 1.0
    err: float = 0.0
    """Error of the window judged last; only the ``pd`` laws look at it."""


class Coverage(NamedTuple):
    """What a judgement measured of one window."""

    n_rcv: int
    total: int
    """N, the tuples of the window known so far."""
    n_req: int

    @property
    def miss(self) -> bool:
        """Whether the first answer contained fewer tuples than required."""
        return self.n_rcv < self.n_req


Law = Callable[[SlackConfig, Factor, Coverage], Factor]


def clip(alpha: float) -> float:
    """The nearest number within [0, 1]."""
    return 0.0 if alpha < 0 else 1.0 if alpha > 1 else alpha


def slack_us(config: SlackConfig, alpha: float, max_delay_us: int) -> int:
    """K of section 2, step 3: a share of the largest delay so far, or the fixed setting."""
    if config.control == "fixed":
        slack = config.fixed_slack_us
    else:
        # Beyond 2^53 the product may be rounded up.
        slack = min(max_delay_us, floor(clip(alpha) * max_delay_us))
    return slack if config.max_slack_us is None else min(slack, config.max_slack_us)


def constant(_config: SlackConfig, _factor: Factor, _coverage: Coverage) -> Factor:
    """No feedback."""
    return Factor()


def conformal_step(config: SlackConfig, factor: Factor, coverage: Coverage) -> float:
    """Alpha a step further from delta/2 misses, before it is clipped."""
    return factor.alpha + config.learning_rate * (coverage.miss - config.delta / 2)


def conformal(config: SlackConfig, factor: Factor, coverage: Coverage) -> Factor:
    """More slack after a miss, a little less after a window that met its requirement."""
    return Factor(clip(conformal_step(config, factor, coverage)))


def pd(config: SlackConfig, factor: Factor, coverage: Coverage) -> Factor:
    """The published law: proportional and differential, on the measured coverage."""
    required = config.lambda_thr
    if required is None:
        required = coverage.n_req / coverage.total
    err = required - coverage.n_rcv / coverage.total
    return Factor(factor.alpha + (config.kp * err + config.kd * (err - factor.err)), err)


def pd_clamped(config: SlackConfig, factor: Factor, coverage: Coverage) -> Factor:
    """The published law without windup."""
    after = pd(config, factor, coverage)
    return Factor(clip(after.alpha), after.err)


LAWS: Mapping[str, Law] = {
    "fixed": constant,
    "max": constant,
    "conformal": conformal,
    "pd": pd,
    "pd-clamped": pd_clamped,
}


def law(config: SlackConfig, factor: Factor, coverage: Coverage) -> Factor:
    """The law of the query's control."""
    return LAWS[config.control](config, factor, coverage)
