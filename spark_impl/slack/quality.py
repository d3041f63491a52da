"""Required coverage and the laws that move alpha (docs/slack.md, sections 4 and 5)."""

from collections.abc import Callable
from fractions import Fraction
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from model.vocabulary import SlackConfig
from model.vocabulary.slack import ADAPTIVE_CONTROLS
from spark_impl.slack.records import Bools, Floats, Ints

_ROUNDING = 1e-9
"""Keeps a product that is an integer on paper from being rounded up."""


class Alpha(NamedTuple):
    """The factor on the largest delay, and what its law remembers."""

    alpha: float
    err_prev: float


def is_adaptive(config: SlackConfig) -> bool:
    """Whether judgements change alpha."""
    return config.control in ADAPTIVE_CONTROLS


def needs_moments(config: SlackConfig) -> bool:
    """Whether the required coverage depends on the values seen so far."""
    return config.lambda_thr is None and config.cv is None and config.aggregate in ("sum", "avg")


def slack_us(config: SlackConfig, alpha: float, max_delay_us: Ints) -> Ints:
    """K for some values of the largest delay."""
    if config.control == "fixed":
        slack = np.full(len(max_delay_us), config.fixed_slack_us, np.int64)
    elif config.control == "max":
        slack = max_delay_us
    else:
        factor = min(max(alpha, 0.0), 1.0)
        slack = np.floor(factor * max_delay_us.astype(np.float64)).astype(np.int64)
    return slack if config.max_slack_us is None else np.minimum(slack, config.max_slack_us)


def squared_cv(config: SlackConfig, n: Ints, s1: Floats, s2: Floats) -> Floats:
    """Squared coefficient of variation: the setting, or estimated from n, S1 and S2."""
    if config.cv is not None:
        return np.full(len(n), config.cv * config.cv)
    with np.errstate(all="ignore"):
        estimate = n * s2 / (s1 * s1) - 1.0
    return np.where((s1 != 0) & (estimate > 0), estimate, 0.0)


def required(config: SlackConfig, total: Ints, cv2: Floats) -> Ints:
    """n_req(N) for every N in ``total``; 0 where nothing is required."""
    if config.lambda_thr is not None:
        return _share(total, config.lambda_thr)
    if config.aggregate == "count":
        wanted = total - _share(total, config.eps) + 1
    elif config.aggregate == "sum":
        wanted = _for_sum(config, total, cv2)
    elif config.aggregate == "avg":
        wanted = _for_avg(config, total, cv2)
    else:
        return np.zeros(len(total), np.int64)
    return np.clip(wanted, 0, total)


def _share(total: Ints, share: float) -> Ints:
    """ceil(share * N), with the share taken as the decimal number that was written."""
    exact = Fraction(repr(share))
    top, bottom = exact.numerator, exact.denominator
    return np.array([-(-top * n // bottom) for n in total.tolist()], np.int64)


def _level(config: SlackConfig) -> float:
    return config.delta / 2 if config.control == "conformal" else config.delta


def _for_sum(config: SlackConfig, total: Ints, cv2: Floats) -> Ints:
    e = config.eps
    z = NormalDist().inv_cdf(1 - _level(config))
    with np.errstate(all="ignore"):
        a = z * z * cv2 / total
        u = (2 * e + a - np.sqrt(a * a + 4 * a * e * (1 - e))) / (2 * (1 + a))
    u = np.where(np.isfinite(u), u, 0.0)  # a too large for float64: nothing may be missing
    return np.ceil((1 - u) * total - _ROUNDING).astype(np.int64)


def _for_avg(config: SlackConfig, total: Ints, cv2: Floats) -> Ints:
    z = NormalDist().inv_cdf(1 - _level(config) / 2)
    spread = z * z * cv2
    with np.errstate(all="ignore"):
        share = spread / (spread + total * (config.eps * config.eps))
    share = np.where(np.isfinite(share), share, 1.0)
    return np.maximum(np.ceil(share * total - _ROUNDING).astype(np.int64), 1)


def alphas(
    config: SlackConfig, start: Alpha, n_rcv: Ints, total: Ints, n_req: Ints, miss: Bools
) -> tuple[list[float], Alpha]:
    """Alpha after each of some judgements in a row, and where that leaves the law."""
    if not is_adaptive(config):
        return [1.0] * len(total), start
    if config.control == "conformal":
        return _conformal(config, start, miss)
    if config.lambda_thr is not None:
        goals = [config.lambda_thr] * len(total)
    else:
        goals = [need / n for need, n in zip(n_req.tolist(), total.tolist(), strict=True)]
    shares = [got / n for got, n in zip(n_rcv.tolist(), total.tolist(), strict=True)]
    limit = _unclipped if config.control == "pd" else _clipped
    return _pd(config, start, [g - s for g, s in zip(goals, shares, strict=True)], limit)


def _conformal(config: SlackConfig, start: Alpha, miss: Bools) -> tuple[list[float], Alpha]:
    budget = config.delta / 2
    alpha, path = start.alpha, []
    for missed in miss.tolist():
        alpha = _clipped(alpha + config.learning_rate * (int(missed) - budget))
        path.append(alpha)
    return path, Alpha(alpha, start.err_prev)


def _pd(
    config: SlackConfig, start: Alpha, errors: list[float], limit: Callable[[float], float]
) -> tuple[list[float], Alpha]:
    alpha, err_prev = start
    path = []
    for err in errors:
        alpha = limit(alpha + (config.kp * err + config.kd * (err - err_prev)))
        err_prev = err
        path.append(alpha)
    return path, Alpha(alpha, err_prev)


def _clipped(alpha: float) -> float:
    return min(max(alpha, 0.0), 1.0)


def _unclipped(alpha: float) -> float:
    return alpha
