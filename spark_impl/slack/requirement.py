"""How many tuples of a window its first answer must contain (docs/slack.md, section 5)."""

from fractions import Fraction
from statistics import NormalDist

import numpy as np

from model.vocabulary import SlackConfig
from spark_impl.runtime.arrays import Floats, Ints
from spark_impl.slack import missing, ranks

_ROUNDING = 1e-9
"""Keeps a product that is an integer on paper from being rounded to its other side."""


def squared_cv(config: SlackConfig, n: Ints, s1: Floats, s2: Floats) -> Floats:
    """Squared coefficient of variation: the setting, or estimated from n, S1 and S2.

    Infinite where the estimate does not fit into float64.
    """
    if config.cv is not None:
        return np.full(len(n), config.cv * config.cv)
    with np.errstate(all="ignore"):
        top, bottom = n * s2, s1 * s1
        estimate = top / bottom - 1.0
    fits = np.isfinite(bottom) & np.isfinite(estimate)
    return np.where(s1 == 0, 0.0, np.where(fits, np.maximum(estimate, 0.0), np.inf))


def required(
    config: SlackConfig,
    total: Ints,
    cv2: Floats,
    values: Floats | None = None,
    task: int = 0,
    order: int = 0,
) -> Ints:
    """n_req of some windows that a task judges in a row; 0 where nothing is required.

    ``total`` holds the tuples known of each (N, at least 1), ``cv2`` the squared coefficient of
    variation at its judgement. ``values`` is looked at if ``config.needs_values``: the values of
    the first window from the largest down, then those of the next. The first window is judgement
    ``order`` of the task.
    """
    if config.lambda_thr is not None:
        return _share(total, config.lambda_thr)
    if config.aggregate == "count":
        wanted = total - _share(total, config.eps) + 1
    elif config.aggregate in ("min", "max"):
        return np.zeros(len(total), np.int64)
    elif config.aggregate in ("median", "quantile"):
        wanted = _for_rank(config, total)
    elif values is not None:
        wanted = missing.required(config, _level(config), total, values, task, order)
    elif config.aggregate == "sum":
        wanted = _for_sum(config, total, cv2)
    else:
        wanted = _for_avg(config, total, cv2)
    clipped: Ints = np.clip(wanted, 0, total)
    return clipped


def decimal(number: float) -> Fraction:
    """The decimal number that was written."""
    return Fraction(repr(float(number)))


def _share(total: Ints, share: float) -> Ints:
    """ceil(share * N), with the share taken as the decimal number that was written."""
    exact = decimal(share)
    top, bottom = exact.numerator, exact.denominator
    return np.array([-(-top * n // bottom) for n in total.tolist()], np.int64)


def _level(config: SlackConfig) -> float:
    return config.delta / 2 if config.control == "conformal" else config.delta


def _for_rank(config: SlackConfig, total: Ints) -> Ints:
    q = decimal(config.q) if config.aggregate == "quantile" else Fraction(1, 2)
    e, d = decimal(config.eps), _level(config)
    if config.sampling == "adversarial":
        return np.array([ranks.adversarial(q, e, n) for n in total.tolist()], np.int64)
    return np.array([ranks.exchangeable(q, e, d, n) for n in total.tolist()], np.int64)


def _for_sum(config: SlackConfig, total: Ints, cv2: Floats) -> Ints:
    e = config.eps
    z = NormalDist().inv_cdf(1 - _level(config))
    with np.errstate(all="ignore"):
        a = z * z * cv2 / total
        u = (2 * e + a - np.sqrt(a * a + 4 * a * e * (1 - e))) / (2 * (1 + a))
    u = np.where(np.isfinite(u), u, 0.0)  # a too large for float64: nothing may be missing
    # a loss of exactly u*N is one too many
    return np.floor((1 - u) * total + _ROUNDING).astype(np.int64) + 1


def _for_avg(config: SlackConfig, total: Ints, cv2: Floats) -> Ints:
    z = NormalDist().inv_cdf(1 - _level(config) / 2)
    spread = z * z * cv2
    with np.errstate(all="ignore"):
        share = spread / (spread + total * (config.eps * config.eps))
    share = np.where(np.isfinite(share), share, 1.0)
    return np.maximum(np.ceil(share * total - _ROUNDING).astype(np.int64), 1)
