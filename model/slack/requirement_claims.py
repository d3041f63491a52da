"""Check promise 3 of docs/slack.md: n_req is right, and a measured miss is a true one.

Rules of this file:

* The required coverage is not computed again but compared with its definition: n_req tuples must
  be enough, and one less must not be. The comparison is exact if the definition is, and has a
  tolerance if the definition is rounded.
* The code is slow and obvious. If values, ranks or an estimate of cv are needed, only the first
  SOME judgements of small windows are checked.
* A trace does not show which arrival of a batch judged a window. If cv is estimated, any of them
  may have.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, comb, fsum, inf, isfinite, log, sqrt
from statistics import NormalDist

from model.slack.evidence import Observation, Truth
from model.vocabulary import SlackConfig
from model.vocabulary.slack import Judged
from model.windows.claims import Findings, name_of
from model.windows.evidence import WindowId

RULED = ("count", "sum", "avg", "min", "max", "median", "quantile")
"""Aggregates whose required coverage this file knows."""
SOME = 200
SMALL = 32
TOLERANCE = 1e-8
"""Relative; wider than the 1e-9 by which docs/slack.md keeps clear of rounding."""

Enough = Callable[[int, float], bool]
"""Function that says whether n tuples suffice if eps is larger by a relative slack."""

# ---------------------------------------------------------------------------------------- claims


def required_coverage_is_right(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that n_req tuples are enough, and one less is not."""
    judgements = observed.trace.of(Judged)
    is_slow, slow, looked_at = _is_slow(truth.config), 0, 0
    estimates = _estimates_of_cv(truth) if _estimates(truth.config) else {}
    for judged in judgements:
        window = judged.task, *judged[2:4]
        total = judged.n_rcv + judged.n_late
        is_countable = 0 <= judged.n_req <= total > 0
        if not is_countable or (is_slow and (slow == SOME or total > SMALL)):
            continue
        if _estimates(truth.config):
            cvs = estimates.get((judged.task, judged.batch), ())
            is_positive = _is_positive(truth, window, total)
            rules = [_normal_form(truth.config, cv, total, is_positive) for cv in cvs]
            rules = rules if is_positive is not None else []
        else:
            rule = _enough(truth, window, total)
            rules = [] if rule is None else [rule]
        if not rules:
            continue
        slow, looked_at = slow + is_slow, looked_at + 1
        n_req = judged.n_req
        if not any(enough(n_req, 0.0) and not enough(n_req - 1, -TOLERANCE) for enough in rules):
            fewer = any(enough(n_req, 0.0) for enough in rules)
            findings.add(
                total,
                f"The judgement of the {name_of(truth, window)} requires {n_req} of {total} "
                f"tuples; {'fewer are' if fewer else 'that is not'} enough.",
            )
    if judgements and not looked_at:
        findings.undetermined = "No judgement of a small window could be worked out again."


def misses_are_true(truth: Truth, observed: Observation, findings: Findings) -> None:
    """Check that a measured miss is still a miss when all tuples are known, if L is long enough."""
    longest_us = max(truth.max_delay_us.values(), default=0)
    looked_at = 0
    for judged in observed.trace.of(Judged):
        window = judged.task, *judged[2:4]
        found = truth.windows.get(window, ())
        measured, true = judged.n_rcv + judged.n_late, len(found)
        if truth.config.feedback > longest_us:
            looked_at += 1
            if measured != true:
                findings.add(
                    true,
                    f"The judgement of the {name_of(truth, window)} counts {measured} tuples; "
                    f"there are {true}.",
                    f"No tuple was delayed by more than {longest_us} us, and L is "
                    f"{truth.config.feedback} us.",
                )
            continue
        enough = _of_all(truth, window)
        if enough is None:
            continue
        looked_at += 1
        if judged.miss and enough(judged.n_rcv, 0.0):
            findings.add(
                true,
                f"The {name_of(truth, window)} is judged a miss with {judged.n_rcv} of {measured} "
                f"tuples, which are enough of the {true} that came in the end.",
            )
    if observed.trace.of(Judged) and not looked_at:
        findings.undetermined = "No judgement of a small window could be worked out again."


def can_be_compared(truth: Truth) -> bool:
    """Return whether L exceeds every delay, or n_req cannot fall while tuples arrive."""
    return truth.config.feedback > max(truth.max_delay_us.values(), default=0) or _grows(truth)


def _grows(truth: Truth) -> bool:
    config = truth.config
    if config.lambda_thr is not None or config.aggregate == "count":
        return True
    if config.aggregate in ("median", "quantile"):
        return False
    is_worst_sum = config.aggregate == "sum" and config.sampling == "adversarial"
    return is_worst_sum or not (config.needs_values or _estimates(config))


def _of_all(truth: Truth, window: WindowId) -> Enough | None:
    """Return the rule for the whole window; None if it cannot be derived."""
    total = len(truth.windows.get(window, ()))
    if _is_slow(truth.config) and total > SMALL:
        return None
    return _enough(truth, window, total)


def _values(truth: Truth, window: WindowId, total: int) -> list[float] | None:
    """Return the values that a judgement counted, if they are needed and known."""
    found = truth.windows.get(window, ())
    is_known = truth.config.needs_values and len(found) == total
    return [arrived.value for arrived in found] if is_known else None


def _is_positive(truth: Truth, window: WindowId, total: int) -> bool | None:
    """Return whether the required coverage may rely on values that are not negative.

    Only a sum needs them. None: the judgement may have counted a negative value, or not.
    """
    negative = [arrived.value < 0 for arrived in truth.windows.get(window, ())]
    if truth.config.aggregate != "sum" or not any(negative):
        return True
    return False if len(negative) == total else None


# --------------------------------------------------------------------------------- what is enough


def _is_slow(config: SlackConfig) -> bool:
    needs_ranks = config.lambda_thr is None and config.aggregate in ("median", "quantile")
    return needs_ranks or config.needs_values or _estimates(config)


def _estimates(config: SlackConfig) -> bool:
    """Return whether n_req depends on a cv that is estimated from the tuples so far."""
    is_normal = config.aggregate in ("sum", "avg") and not config.needs_values
    return is_normal and config.lambda_thr is None and config.cv is None


def _estimates_of_cv(truth: Truth) -> Mapping[tuple[int, int], Sequence[float]]:
    """Return cv after each arrival of a small batch, by (task, batch); in a flush, the last one.

    Tasks with redeliveries are left out, because the trace does not show which were recognised.
    """
    found: dict[tuple[int, int], list[float]] = {}
    redelivered = {task for task, _ in truth.deliveries}
    for task, arrivals in truth.arrived.items():
        if task in redelivered:
            continue
        total, squares = 0.0, 0.0
        for n, arrived in enumerate(arrivals, start=1):
            total += arrived.value
            squares += arrived.value * arrived.value
            found.setdefault((task, arrived.batch), []).append(_cv(n, total, squares))
        found[task, truth.batches] = [_cv(len(arrivals), total, squares)]
    return {at: cvs for at, cvs in found.items() if len(cvs) <= SMALL}


def _cv(n: int, total: float, squares: float) -> float:
    if total == squares == 0:
        return 0.0
    ratio = n * squares / (total * total) if total * total else inf
    return sqrt(max(0.0, ratio - 1)) if isfinite(ratio) else inf


def _least(config: SlackConfig) -> int:
    """Return the least requirement: a rank or an average needs a tuple."""
    has_none = config.lambda_thr is not None or config.aggregate not in (
        "avg",
        "median",
        "quantile",
    )
    return 0 if has_none else 1


def _enough(truth: Truth, window: WindowId, total: int) -> Enough | None:
    """Return the rule; None if it needs values or a cv that are not known.

    A wrong trace may count more tuples than there are: then it has all of them.
    """
    if truth.config.aggregate not in RULED:
        msg = f"no rule says which coverage the aggregate {truth.config.aggregate!r} requires"
        raise ValueError(msg)
    is_positive = _is_positive(truth, window, total)
    rule = _rule(truth.config, total, _values(truth, window, total), is_positive)
    least = _least(truth.config)
    return None if rule is None else lambda n, slack: n >= least and rule(min(n, total), slack)


def _rule(
    config: SlackConfig,
    total: int,
    values: Sequence[float] | None,
    is_positive: bool | None,
) -> Enough | None:
    """Return the first rule of section 5 that applies."""
    eps = Fraction(repr(config.eps))
    if config.lambda_thr is not None:
        share = Fraction(repr(config.lambda_thr))
        return lambda n, _slack: n >= share * total
    if config.aggregate == "count":
        return lambda n, _slack: total - n < eps * total
    if config.aggregate in ("min", "max"):
        return lambda _n, _slack: True
    d = _level(config)
    if config.aggregate in ("median", "quantile"):
        return _enough_ranks(config, eps, d, total)
    if is_positive is None:
        return None
    if not is_positive:
        return lambda n, _slack: n == total
    if not config.needs_values:
        return None if config.cv is None else _enough_by_cv(config, config.cv, total)
    return _by_values(config, values, d) if values else None


def _by_values(config: SlackConfig, values: Sequence[float], d: float) -> Enough:
    """Return the rule of a method that needs the values of the window."""
    ordered, eps = sorted(values, reverse=True), Fraction(repr(config.eps))
    if config.sampling == "adversarial":
        return _enough_of_the_worst(ordered, eps, config.aggregate == "avg")
    bounded = _enough_average if config.aggregate == "avg" else _enough_sum
    return bounded(ordered, config.eps, d)


def _level(config: SlackConfig) -> float:
    return config.delta / 2 if config.control == "conformal" else config.delta


def _normal_form(config: SlackConfig, cv: float, total: int, is_positive: bool | None) -> Enough:
    """Return the normal form, or the rule that a negative value in a sum requires every tuple."""
    if not is_positive:
        return lambda n, _slack: n == total
    rule = _enough_by_cv(config, cv, total)
    return lambda n, slack: rule(min(n, total), slack)


def _enough_by_cv(config: SlackConfig, cv: float, total: int) -> Enough:
    """Return the normal form: mean plus z deviations of the error, without replacement."""
    is_sum = config.aggregate == "sum"
    z = NormalDist().inv_cdf(1 - (_level(config) if is_sum else _level(config) / 2))

    def error(n: int) -> float:
        missing = 1 - n / total
        if is_sum:
            return missing + z * cv * sqrt(missing * (1 - missing) / total)
        return z * cv * sqrt(missing / n)

    def enough(n: int, slack: float) -> bool:
        limit = config.eps * (1 + slack)
        # For a sum, the error must stay below eps.
        if n == total or n < _least(config):
            return n == total
        return error(n) < limit - 1e-12 if is_sum else error(n) <= limit + 1e-9

    return enough


@lru_cache(maxsize=1 << 12)
def rank_failures(q: Fraction, eps: Fraction, total: int, n: int) -> Fraction:
    """Return the share of all n-subsets of 1..N whose answer is eps * N ranks off or more."""
    aim, k = ceil(q * total), ceil(q * n)
    failed = sum(
        comb(rank - 1, k - 1) * comb(total - rank, n - k)
        for rank in range(1, total + 1)
        if abs(rank - aim) >= eps * total
    )
    return Fraction(failed, comb(total, n))


def _enough_ranks(config: SlackConfig, eps: Fraction, d: float, total: int) -> Enough:
    q = Fraction(1, 2) if config.aggregate == "median" else Fraction(repr(config.q))
    allowed = 0 if config.sampling == "adversarial" else Fraction(d) * (1 + Fraction(1, 10**9))
    return lambda n, _slack: all(
        rank_failures(q, eps, total, more) <= allowed for more in range(n, total + 1)
    )


def _enough_of_the_worst(ordered: Sequence[float], eps: Fraction, average: bool) -> Enough:
    exact = [Fraction(value) for value in ordered]
    total, whole = len(exact), sum(exact, Fraction())

    def differs(kept: Sequence[Fraction], limit: Fraction) -> bool:
        right = whole / total if average else whole
        answer = sum(kept, Fraction()) / (len(kept) if average else 1)
        return abs(answer - right) >= limit * abs(right)

    def enough(n: int, slack: float) -> bool:
        limit = eps * (1 + Fraction(slack))
        if n == total:
            return True
        return not any(
            differs(exact[m:], limit) or (average and differs(exact[: total - m], limit))
            for m in range(total - n + 1)
        )

    return enough


def _enough_sum(ordered: Sequence[float], eps: float, d: float) -> Enough:
    """Return the rule that as many or more missing tuples pass one of three tests."""
    total, whole = len(ordered), fsum(ordered)
    mean = whole / total
    variance = max(0.0, fsum(value * value for value in ordered) / total - mean * mean)
    needed = log(1 / d)

    def passes(m: int, limit: float) -> bool:
        t = limit / m - mean
        serfling = (1 - (m - 1) / total) * (ordered[0] - ordered[-1]) ** 2
        bernstein = variance + (ordered[0] - mean) * t / 3
        return fsum(ordered[:m]) < limit or (
            t > 0
            and (
                (serfling > 0 and 2 * m * t * t / serfling >= needed)
                or (bernstein > 0 and m * t * t / (2 * bernstein) >= needed)
            )
        )

    return lambda n, slack: (
        n == total or any(passes(m, eps * (1 + slack) * whole) for m in range(total - n, total + 1))
    )


def _enough_average(ordered: Sequence[float], eps: float, d: float) -> Enough:
    """Return the rule that twice Serfling's bound is at most d."""
    total, mean, width = len(ordered), fsum(ordered) / len(ordered), ordered[0] - ordered[-1]

    def enough(n: int, slack: float) -> bool:
        if n == total or width == 0:
            return n == total or mean != 0
        t = eps * (1 + slack) * mean
        return 2 * n * t * t / ((1 - (n - 1) / total) * width * width) >= log(2 / d) - 1e-9

    return enough
