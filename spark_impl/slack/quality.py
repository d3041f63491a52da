"""Required coverage and the laws that move alpha (docs/slack.md, sections 4 and 5)."""

from fractions import Fraction
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from model.vocabulary import SlackConfig
from model.vocabulary.slack import ADAPTIVE_CONTROLS
from spark_impl.slack.records import Bools, Floats, Ints

_ROUNDING = 1e-9
"""Keeps a product that is an integer on paper from being rounded up."""


class Law(NamedTuple):
    """The factor on the largest delay, and what the law that moves it remembers."""

    alpha: float
    err_prev: float
    judged: int
    """Judgements so far."""


def is_adaptive(config: SlackConfig) -> bool:
    """Whether judgements change alpha."""
    return config.control in ADAPTIVE_CONTROLS


def slack_us(config: SlackConfig, alpha: float, max_delay_us: Ints) -> Ints:
    """K for some values of the largest delay."""
    if config.control == "fixed":
        slack = np.full(len(max_delay_us), config.fixed_slack_us, np.int64)
    elif config.control == "max":
        slack = max_delay_us
    else:
        factor = min(max(alpha, 0.0), 1.0)
        share = np.floor(factor * max_delay_us.astype(np.float64)).astype(np.int64)
        # float64 rounds beyond 2^53, where the share could come out above the whole
        slack = np.minimum(share, max_delay_us)
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
    clipped: Ints = np.clip(wanted, 0, total)
    return clipped


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


def judge(
    config: SlackConfig, law: Law, n_rcv: Ints, total: Ints, n_req: Ints, miss: Bools
) -> tuple[list[float], Law]:
    """Alpha after each of some judgements in a row, and what they make of the law."""
    judged = law.judged + len(total)
    if not is_adaptive(config):
        return [1.0] * len(total), law._replace(judged=judged)
    if config.control == "conformal":
        path = _conformal(config, law.alpha, miss)
        return path, Law(path[-1], law.err_prev, judged)
    if config.lambda_thr is not None:
        goals = [config.lambda_thr] * len(total)
    else:
        goals = [need / n for need, n in zip(n_req.tolist(), total.tolist(), strict=True)]
    shares = [got / n for got, n in zip(n_rcv.tolist(), total.tolist(), strict=True)]
    errors = [goal - share for goal, share in zip(goals, shares, strict=True)]
    path = _pd(config, law, errors)
    return path, Law(path[-1], errors[-1], judged)


def _conformal(config: SlackConfig, alpha: float, miss: Bools) -> list[float]:
    budget = config.delta / 2
    path = []
    for missed in miss.tolist():
        alpha = _clipped(alpha + config.learning_rate * (int(missed) - budget))
        path.append(alpha)
    return path


def _pd(config: SlackConfig, law: Law, errors: list[float]) -> list[float]:
    alpha, err_prev = law.alpha, law.err_prev
    path = []
    for err in errors:
        alpha = alpha + (config.kp * err + config.kd * (err - err_prev))
        if config.control == "pd-clamped":
            alpha = _clipped(alpha)
        err_prev = err
        path.append(alpha)
    return path


def _clipped(alpha: float) -> float:
    return min(max(alpha, 0.0), 1.0)
