"""Coverage of first answers, counted from the arrivals: an oracle that imports nothing of ours.

Rules of this file:

* The oracle follows docs/slack.md, section 7, promise 3, for streams whose tuples are exchangeable.
  Every task has a controller of its own, so every task is judged.
* The promise is kept if the whole interval of the measured share lies below the promised share. If
  the promised one lies within it, there are too few windows: that is said, and is no pass.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import ceil, exp, lgamma, log
from typing import Any, NamedTuple

from properties.oracles.promises import Steps, Workload, aggregate_of, answers_by_window, tuples_of

CONFIDENCE = 0.99
"""Confidence of each interval; it is two-sided."""

HIDDEN = 1 / 8
"""Largest share of windows that the first steps of the published law may cost."""


class Window(NamedTuple):
    """First answer of a window."""

    held: int
    """Number of its tuples that the answer held."""
    tuples: int
    is_short: bool
    """True if it held less than was asked for, or erred by ``eps`` or more."""


def first_answers(workload: Workload, steps: Steps) -> Mapping[int, list[Window]]:
    """Return the windows of each task, by start and key, with what the arrivals say of them."""
    found: dict[int, list[Window]] = defaultdict(list)
    answers = answers_by_window(steps["result"])
    for window, values in sorted(tuples_of(workload).of.items()):
        first = answers.get(window, [{"n_rcv": 0, "value": 0.0}])[0]
        is_short = _is_short(workload, values, first)
        found[window[0]].append(Window(first["n_rcv"], len(values), is_short))
    return found


def _is_short(workload: Workload, values: Mapping[int, float], first: Mapping[str, Any]) -> bool:
    config = workload["config"]
    share = config.get("lambda_thr")
    if share is not None:
        return bool(first["n_rcv"] < ceil(Fraction(str(share)) * len(values)))
    exact = Fraction(aggregate_of(workload, values))
    error = abs(Fraction(first["value"]) - exact)
    return error >= Fraction(str(config["eps"])) * abs(exact)


def list_low_coverage(workload: Workload, answers: Mapping[int, list[Window]]) -> list[str]:
    """Judge the first answers of a query with the control ``conformal`` or ``pd``."""
    law = _published_law if workload["config"].get("control") == "pd" else _conformal
    if not answers:
        return ["undetermined: there are no windows"]
    return [each for task, windows in answers.items() for each in law(workload, task, windows)]


def _conformal(workload: Workload, task: int, windows: list[Window]) -> Iterator[str]:
    """Judge how many windows are short: a share of delta, and what the first step adds."""
    config, number = workload["config"], len(windows)
    first_step = 1 / (config["learning_rate"] * number)
    if first_step > config["delta"] / 2:
        yield f"undetermined: task {task} has {number} windows, fewer than a controller learns from"
        return
    promised = config["delta"] + first_step
    short = sum(each.is_short for each in windows)
    low, high = interval(short, number)
    if high >= promised:
        verdict = "too many are short" if low > promised else "undetermined"
        yield (
            f"{verdict}: {short} of {number} windows of task {task} are short, which is a share"
            f" between {low:.4f} and {high:.4f}; less than {promised:.4f} is promised"
        )


def _published_law(workload: Workload, task: int, windows: list[Window]) -> Iterator[str]:
    """Judge the mean coverage, which is all that the published law steers.

    Errors sum to less than (alpha - 1 + kd)/kp; alpha passes 1 by at most one step, kp + kd.
    """
    config, number = workload["config"], len(windows)
    allowed = 1 + 2 * config["kd"] / config["kp"]
    missing = sum(config["lambda_thr"] - each.held / each.tuples for each in windows)
    if allowed > HIDDEN * number:
        yield f"undetermined: task {task} has {number} windows, of which {allowed:g} may lack all"
    elif missing > allowed:
        mean = sum(each.held / each.tuples for each in windows) / number
        yield (
            f"the mean coverage of {number} windows of task {task} is {mean:.4f}; promised is"
            f" {config['lambda_thr'] - allowed / number:.4f}"
        )


# -------------------------------------------------------------------------------- the interval


def interval(successes: int, trials: int) -> tuple[float, float]:
    """Return limits of a probability (Clopper, Pearson 1934)."""
    tail = (1 - CONFIDENCE) / 2
    low = _root(lambda p: 1 - _at_most(successes - 1, trials, p), tail) if successes else 0.0
    high = _root(lambda p: -_at_most(successes, trials, p), -tail) if successes < trials else 1.0
    return low, high


def _at_most(successes: int, trials: int, p: float) -> float:
    """Return the probability of so many successes or fewer."""
    total = 0.0
    for n in range(successes + 1):
        log_ways = lgamma(trials + 1) - lgamma(n + 1) - lgamma(trials - n + 1)
        total += exp(log_ways + n * log(p) + (trials - n) * log(1 - p))
    return total


def _root(rising: Any, aim: float) -> float:
    """Return where in [0, 1] a rising function reaches a value."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) >= aim else (middle, high)
    return (low + high) / 2
