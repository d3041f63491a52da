"""The control laws that move alpha (docs/slack.md, section 4)."""

from typing import NamedTuple

import numpy as np

from model.vocabulary import SlackConfig
from model.vocabulary.slack import ADAPTIVE_CONTROLS
from spark_impl.runtime.arrays import Bools, Ints


class Law(NamedTuple):
    """The factor alpha on the largest delay, and the state of its control law."""

    alpha: float
    err_prev: float
    judged: int
    """Number of judgements so far."""


def is_adaptive(config: SlackConfig) -> bool:
    """Return whether judgements change alpha."""
    return config.control in ADAPTIVE_CONTROLS


def slack_us(config: SlackConfig, alpha: float, max_delay_us: Ints) -> Ints:
    """Return K for some values of the largest delay."""
    match config.control:
        case "fixed":
            slack = np.full(len(max_delay_us), config.fixed_slack_us, np.int64)
        case "max":
            slack = max_delay_us
        case "conformal" | "pd" | "pd-clamped" | "aq":
            share = np.floor(_clipped(alpha) * max_delay_us.astype(np.float64)).astype(np.int64)
            # float64 rounds beyond 2^53, and the share could exceed the whole
            slack = np.minimum(share, max_delay_us)
        case unknown:
            msg = f"there is no control {unknown!r}"
            raise ValueError(msg)
    return slack if config.max_slack_us is None else np.minimum(slack, config.max_slack_us)


def least_slack_us(config: SlackConfig, judged: int) -> int:
    """Return how long a task waits at least that has judged so many windows."""
    if not is_adaptive(config) or judged * config.delta >= 2:
        return 0
    limits = [config.start_slack]
    if config.max_slack_us is not None:
        limits.append(config.max_slack_us)
    return min(limits)


def judge(
    config: SlackConfig, law: Law, n_rcv: Ints, total: Ints, n_req: Ints, miss: Bools
) -> tuple[list[float], Law]:
    """Return alpha after each of some judgements in a row, and the law after them."""
    judged = law.judged + len(total)
    if not is_adaptive(config):
        return [1.0] * len(total), law._replace(judged=judged)
    if config.control == "conformal":
        path = conformal_path(config, law.alpha, miss)
        return path, Law(path[-1], law.err_prev, judged)
    if config.lambda_thr is not None:
        goals = [config.lambda_thr] * len(total)
    else:
        goals = [need / n for need, n in zip(n_req.tolist(), total.tolist(), strict=True)]
    shares = [got / n for got, n in zip(n_rcv.tolist(), total.tolist(), strict=True)]
    errors = [goal - share for goal, share in zip(goals, shares, strict=True)]
    path = _pd(config, law, errors)
    return path, Law(path[-1], errors[-1], judged)


def conformal_path(config: SlackConfig, alpha: float, miss: Bools) -> list[float]:
    """Return alpha after each of some judgements in a row, under the conformal law."""
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
