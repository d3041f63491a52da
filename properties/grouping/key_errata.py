"""Keys that are forgotten, that have one candidate, or that are kept in too many places.

Rules of this file:

1. Everything is tried in a fixed order, the smallest first: nothing that was tried before a
   counterexample breaks the promise.
2. Routers and summaries are those of the reference, with the rules in question.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import ceil, floor
from string import ascii_lowercase
from typing import NamedTuple

from model.checking.claims import Judgement, Outcome, Verdict
from model.grouping import claims, make_system, run
from model.grouping.state import Summary, count_keys, floor_of, merge_summaries
from model.vocabulary import GroupingConfig, Trace, Workload
from model.vocabulary.grouping import Heavy, Route
from properties.errors import counted
from properties.grouping.draws import Draws, stream
from properties.pages.errata import Findings, smaller

Rounded = Callable[[float], int]

# ---------------------------------------------------------------------------- counters, rounded

SHARES = (0.3, 0.35, 0.4, 0.45, 0.6, 0.7, 0.8)
"""eps, none of them one over an integer."""
LETTERS = "abc"
LENGTHS = range(1, 8)
REMEMBERED = "a key with more than eps of the tuples has a counter"


def counters() -> Findings:
    """The first stream whose frequent key has no counter where there are floor(1/eps) of them."""
    found = next((i, *case) for i, case in enumerate(_streams()) if _forgotten(*case, floor))
    tried, keys, eps = found
    ((key, frequency),) = _forgotten(keys, eps, floor)
    kept = ", ".join(f"{name}: {each.counted}" for name, each in _summary(keys, eps, floor).items())
    told = (
        f"Tuples of the keys {' '.join(keys)}, each a micro-batch; eps = {eps}, so"
        f" {counted(floor(1 / eps), 'counter')}.",
        f"In the end the summary has {kept}; {key} has {frequency} of {len(keys)} tuples, more than"
        f" {eps} of them.",
        smaller(tried),
    )
    literal = Verdict(REMEMBERED, Outcome.BROKEN, f"{key} has none.")
    same = _remembered([(keys, eps)], f"With {counted(ceil(1 / eps), 'counter')} {key} has one.")
    every = list(_streams())
    scope = _remembered(
        every,
        f"It holds in {len(every):,} cases: all streams of up to {LENGTHS[-1]} tuples of"
        f" {len(LETTERS)} keys, {len(SHARES)} values of eps.",
    )
    return Findings(told, literal, same, scope)


def _streams() -> Iterator[tuple[str, float]]:
    for length in LENGTHS:
        for keys, eps in product(product(LETTERS, repeat=length), SHARES):
            yield "".join(keys), eps


def _summary(keys: str, eps: float, rounded: Rounded) -> Summary:
    k = rounded(1 / eps)
    summary: Summary = {}
    for key in keys:
        summary = merge_summaries(summary, floor_of(summary, k), count_keys([key]), 0, k)
    return summary


def _forgotten(keys: str, eps: float, rounded: Rounded) -> list[tuple[str, int]]:
    """Keys without a counter that must have one, with their frequencies."""
    summary = _summary(keys, eps, rounded)
    frequent = [(key, f) for key, f in Counter(keys).items() if f > eps * len(keys)]
    return [(key, f) for key, f in frequent if key not in summary]


def _remembered(cases: Sequence[tuple[str, float]], sentence: str) -> Verdict:
    bad = [(keys, eps) for keys, eps in cases if _forgotten(keys, eps, ceil)]
    if bad:
        return Verdict(REMEMBERED, Outcome.BROKEN, f"It is broken in {bad[0]}.")
    return Verdict(REMEMBERED, Outcome.HOLDS, sentence)


# ------------------------------------------------------------------------------- one candidate

INSTANCES = range(2, 5)
WINDOWS = (1, 10, 40)
"""Tuples of a window."""
SEVERAL = "a heavy key has at least two candidates"


class Hot(NamedTuple):
    """Two windows in which one key is as frequent as makes it heavy, and no more."""

    n: int
    window: int
    key: str

    @property
    def frequency(self) -> int:
        """Its tuples in a window."""
        return floor(self.window * GroupingConfig(self.n).theta_share) + 1

    def candidates(self, policy: str) -> tuple[int, ...]:
        """Of the key, in the second window."""
        others = [f"light {number}" for number in range(self.window - self.frequency)]
        keys = [self.key] * self.frequency + others
        config = GroupingConfig(self.n, policy, window_tuples=self.window)
        heavy = run(stream(keys * 2, config)).of(Heavy)
        return next(each.candidates for each in heavy if each.key == self.key)


HOT = tuple(Hot(n, window, key) for n, window, key in product(INSTANCES, WINDOWS, ascii_lowercase))


def one_candidate() -> Findings:
    """The first heavy key for which the same instance is drawn every time."""
    tried = next(i for i, hot in enumerate(HOT) if len(hot.candidates("tag-literal")) < 2)
    hot = HOT[tried]
    larger = [each for each in HOT if (each.n, each.window) == (hot.n, WINDOWS[-1])]
    alone = sum(len(each.candidates("tag-literal")) < 2 for each in larger)
    told = (
        f"{counted(hot.n, 'instance')}, windows of {counted(hot.window, 'tuple')}, of which"
        f" {hot.frequency} with the key {hot.key}: it is heavy in the second window.",
        "One draw for every q tuples, and q is as many as a key at theta has: its only candidate is"
        f" instance {hot.candidates('tag-literal')[0]}.",
        f"Longer windows do not help: with {larger[0].frequency} of {WINDOWS[-1]} tuples {alone} of"
        f" {len(larger)} keys have one candidate.",
        smaller(tried, "case"),
    )
    return Findings(
        told, _several([hot], "tag-literal"), _several([hot], "tag"), _several(HOT, "tag")
    )


def _several(cases: Sequence[Hot], policy: str) -> Verdict:
    least = min(len(hot.candidates(policy)) for hot in cases)
    outcome = Outcome.HOLDS if least >= 2 else Outcome.BROKEN
    sentence = f"It has {counted(least, 'candidate')}."
    if len(cases) > 1:
        sentence = f"None of {len(cases)} keys has fewer than {least}."
    return Verdict(SEVERAL, outcome, sentence)


# -------------------------------------------------------------------------------------- memory

HOT_KEYS = range(1, 61)
CREWS = range(3, 7)
EACH = 8
"""Tuples of a window, for every instance."""
MEMORY = "k keys are kept in at most 2k + 5n^2 - 2n places"
PER_WINDOW = "k keys of a window are kept in at most 2k + 5n^2 - 10n places"


def memory() -> Findings:
    """The shortest stream, key after key, that is kept in more places than that."""
    tried = 0
    for hot, n in product(HOT_KEYS, CREWS):
        case = _one_by_one(n, hot)
        trace = run(case)
        if (places := _places(case, trace)) > _printed(n, hot):
            break
        tried += 1
    told = (
        f"{counted(n, 'instance')} and {hot} keys, each of them alone for two windows of"
        f" {EACH * n} tuples: light in the first one, heavy in the second.",
        f"After {2 * hot} windows the keys have been at {places} places, counted key by key;"
        f" 2k + 5n^2 - 2n is {_printed(n, hot)}.",
        smaller(tried),
    )
    outcome = Outcome.BROKEN if places > _printed(n, hot) else Outcome.UNDETERMINED
    literal = Verdict(MEMORY, outcome, f"Kept for good, they are in {places} places.")
    same = _per_window([claims.judge(case, trace)], f"In each of {2 * hot} windows it holds.")
    return Findings(told, literal, same, _in_windows())


def _printed(n: int, k: int) -> int:
    return 2 * k + 5 * n * n - 2 * n


def _one_by_one(n: int, hot: int) -> Workload:
    keys = [f"k{number}" for number in range(hot) for _ in range(2 * EACH * n)]
    return stream(keys, GroupingConfig(n, "tag-literal", window_tuples=EACH * n))


def _places(case: Workload, trace: Trace) -> int:
    key_of = {event.seq: event.key for event in case.arrivals}
    return len({(key_of[route.seq], route.instance) for route in trace.of(Route)})


def _in_windows() -> Verdict:
    """Windows of many keys, under every policy that gives a heavy key more than two candidates."""
    judged = []
    for n, policy in product(CREWS, ("d-choices", "w-choices", "tag-literal", "tag")):
        draws = Draws(n, policy, slow=n // 2, keys=200, exponent=1.5, window_tuples=400)
        case = draws.workload(n)
        judged.append(claims.judge(case, make_system()(case)))
    sentence = f"It holds in {2 * len(judged)} windows of 400 tuples with Zipf's shares."
    return _per_window(judged, sentence)


def _per_window(judged: Sequence[Judgement], sentence: str) -> Verdict:
    verdicts = [each for one in judged for each in one.verdicts if each.claim == claims.FEW]
    broken = [each for each in verdicts if each.outcome is Outcome.BROKEN]
    if broken:
        return Verdict(PER_WINDOW, Outcome.BROKEN, broken[0].sentence)
    if not any(one.guards["heavy keys with more than 2 candidates"] for one in judged):
        return Verdict(PER_WINDOW, Outcome.UNDETERMINED, "No key had more than two candidates.")
    return Verdict(PER_WINDOW, Outcome.HOLDS, sentence)
