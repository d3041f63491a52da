"""Specification of docs/slack.md, section 5: one window, one formula, one loop."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations
from statistics import NormalDist

import numpy as np

from model.vocabulary import SlackConfig


def level(c: SlackConfig) -> float:
    return c.delta / 2 if c.control == "conformal" else c.delta


def exact(number: float) -> Fraction:
    return Fraction(str(number))


def required(c: SlackConfig, n: int, cv2: float, values: list[float], task: int, order: int) -> int:
    need = _required(c, n, cv2, values, task, order)
    return min(max(need, 0), n)


def _required(
    c: SlackConfig, n: int, cv2: float, values: list[float], task: int, order: int
) -> int:
    if c.lambda_thr is not None:
        return math.ceil(exact(c.lambda_thr) * n)
    if c.aggregate == "count":
        return n - math.ceil(exact(c.eps) * n) + 1
    if c.aggregate in ("min", "max"):
        return 0
    if c.aggregate in ("median", "quantile"):
        return rank(c, n)
    if c.aggregate == "sum" and min(values, default=0) < 0:
        return n
    if c.sampling == "adversarial" or c.method != "normal":
        down = sorted(values, reverse=True)
        if c.sampling == "adversarial":
            return (adversarial_sum if c.aggregate == "sum" else adversarial_avg)(down, c.eps)
        if c.method == "permutation":
            return permutation(down, c.eps, level(c), task, order)
        return (rigorous_sum if c.aggregate == "sum" else rigorous_avg)(down, c.eps, level(c))
    return normal(c, n, cv2)


def normal(c: SlackConfig, n: int, cv2: float) -> int:
    e, d = c.eps, level(c)
    if cv2 == math.inf:
        return n
    if c.aggregate == "sum":
        a = NormalDist().inv_cdf(1 - d) ** 2 * cv2 / n
        u = (2 * e + a - math.sqrt(a**2 + 4 * a * e * (1 - e))) / (2 * (1 + a))
        return math.floor((1 - u) * n + 1e-9) + 1
    z2 = NormalDist().inv_cdf(1 - d / 2) ** 2
    return max(1, math.ceil(z2 * cv2 / (z2 * cv2 + n * e**2) * n - 1e-9))


def prefix_sums(values: list[float]) -> list[float]:
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    return sums


def adversarial_sum(v: list[float], e: float) -> int:
    missing = prefix_sums(v)
    passed = [m for m in range(1, len(v) + 1) if missing[m] < e * missing[-1] * (1 - 1e-9)]
    return len(v) - max(passed, default=0)


def rigorous_sum(v: list[float], e: float, d: float) -> int:
    n, missing = len(v), prefix_sums(v)
    total, squares = missing[-1], prefix_sums([x * x for x in v])[-1]
    mu = total / n
    var = max(0.0, squares / n - mu**2)
    passed = [0]
    for m in range(1, n + 1):
        limit = e * total * (1 - 1e-9)
        t = limit / m - mu
        serfling = (1 - (m - 1) / n) * (v[0] - v[-1]) ** 2
        bernstein = 2 * (var + (v[0] - mu) * t / 3)
        if (
            missing[m] < limit
            or (t > 0 and serfling and 2 * m * t**2 / serfling >= math.log(1 / d))
            or (t > 0 and bernstein and m * t**2 / bernstein >= math.log(1 / d))
        ):
            passed.append(m)
    return n - max(passed)


def permutation(v: list[float], e: float, d: float, task: int, order: int) -> int:
    n = len(v)
    size, repeats = min(n, 1024), math.ceil(10 / d)
    w = [v[i * n // size] for i in range(size)]
    total, allowed = prefix_sums(w)[-1], failures_allowed(repeats, d)
    dice = np.random.Generator(np.random.PCG64([task, order]))
    shuffled, missing = [list(w) for _ in range(repeats)], [0.0] * repeats
    for i in range(size):
        draws = dice.random(repeats)
        for r in range(repeats):
            j = i + math.floor(draws[r] * (size - i))
            shuffled[r][i], shuffled[r][j] = shuffled[r][j], shuffled[r][i]
            missing[r] += shuffled[r][i]
        if sum(each >= e * total * (1 - 1e-9) for each in missing) > allowed:
            return n - i * n // size
    raise AssertionError


def failures_allowed(repeats: int, d: float) -> int:
    """Return the largest f with P(Binomial(R, d) <= f) <= 0.05."""
    f, below = -1, 0.0
    while True:
        below += math.comb(repeats, f + 1) * d ** (f + 1) * (1 - d) ** (repeats - f - 1)
        if below > 0.05:
            return f
        f += 1


def adversarial_avg(v: list[float], e: float) -> int:
    n, largest, smallest = len(v), prefix_sums(v), prefix_sums(v[::-1])
    mu = largest[-1] / n
    best = None
    for m in range(n):
        means = [(largest[-1] - part[m]) / (n - m) for part in (largest, smallest)]
        if any(abs(mean - mu) >= e * abs(mu) * (1 - 1e-9) for mean in means):
            break
        best = m
    return n if best is None else n - best


def rigorous_avg(v: list[float], e: float, d: float) -> int:
    n = len(v)
    mu = prefix_sums(v)[-1] / n
    if mu == 0:
        return n
    g = math.log(2 / d) * (v[0] - v[-1]) ** 2 / (2 * e**2 * mu**2)
    return max(1, math.ceil(g * (n + 1) / (n + g) - 1e-9))


def rank(c: SlackConfig, total: int) -> int:
    best, chance = total, adversarial_rank if c.sampling == "adversarial" else off_by_chance
    limit = Fraction(level(c)) * (1 + Fraction(1, 10**9))
    q = exact(c.q) if c.aggregate == "quantile" else Fraction(1, 2)
    while best > 1 and chance(q, exact(c.eps), total, best - 1) <= limit:
        best -= 1
    return best


def off_by_chance(q: Fraction, e: Fraction, total: int, n: int) -> Fraction:
    k, r0, c = math.ceil(q * n), math.ceil(q * total), math.ceil(e * total)
    p = Fraction(0)
    if r0 + c <= total:
        p += sum(hypergeometric(total, r0 + c - 1, n, x) for x in range(k))
    if r0 - c >= 1:
        p += sum(hypergeometric(total, r0 - c, n, x) for x in range(k, n + 1))
    return p


def adversarial_rank(q: Fraction, e: Fraction, total: int, n: int) -> Fraction:
    k, r0, c = math.ceil(q * n), math.ceil(q * total), math.ceil(e * total)
    return Fraction(0 if r0 - k < c and k + (total - n) - r0 < c else 1)


def hypergeometric(total: int, marked: int, n: int, x: int) -> Fraction:
    if n - x > total - marked:
        return Fraction(0)
    return Fraction(math.comb(marked, x) * math.comb(total - marked, n - x), math.comb(total, n))


def failing_share(values: list[float], n: int, off: Callable[[list[float]], bool]) -> Fraction:
    """Return the share of all subsets of ``n`` tuples whose answer is off."""
    results = [off(kept) for kept in subsets(values, n)]
    return Fraction(sum(results), len(results))


def subsets(values: list[float], n: int) -> Iterator[list[float]]:
    return (list(kept) for kept in combinations(values, n))
