"""Errata of room ``grouping``: where time-aware grouping, read literally, breaks its promises.

Source: TAG, time-aware grouping for stream processing. This file finds keys that have one
candidate, or that are kept in too many places; ``balance_errata`` finds the rest.

Rules of this file:

1. Cases are tried in a fixed order, the smallest first.
2. Routers are those of the reference, with the rules in question.
"""

from collections.abc import Callable, Sequence
from itertools import product
from math import floor
from string import ascii_lowercase
from typing import NamedTuple

from model.checking.claims import Judgement, Outcome, Verdict
from model.grouping import claims, make_system, run
from model.grouping.variants import VARIANTS
from model.vocabulary import GroupingConfig, Trace, Workload
from model.vocabulary.grouping import Heavy, Route
from straggler.errors import counted
from straggler.pages.errata import Erratum, Findings, Kind, decide, erratum, search, smaller
from straggler.rooms.grouping import balance_errata
from straggler.rooms.grouping.draws import Draws, stream

# ------------------------------------------------------------------------------- one candidate

INSTANCES = range(2, 5)
WINDOWS = (1, 10, 40)
"""Numbers of tuples in a window."""
SEVERAL = "a heavy key has at least two candidates"


class Hot(NamedTuple):
    """Two windows in which one key is just frequent enough to be heavy."""

    n: int
    window: int
    key: str

    @property
    def frequency(self) -> int:
        """Number of its tuples in a window."""
        return floor(self.window * GroupingConfig(self.n).theta_share) + 1

    def candidates(self, policy: str) -> tuple[int, ...]:
        """Return the candidates of the key in the second window."""
        others = [f"light {number}" for number in range(self.window - self.frequency)]
        keys = [self.key] * self.frequency + others
        config = GroupingConfig(self.n, policy, window_tuples=self.window)
        heavy = run(stream(keys * 2, config)).of(Heavy)
        return next(each.candidates for each in heavy if each.key == self.key)


HOT = tuple(Hot(n, window, key) for n, window, key in product(INSTANCES, WINDOWS, ascii_lowercase))


def one_candidate() -> Findings:
    """Find the first heavy key whose candidates are all drawn as the same instance."""
    return search(
        SEVERAL,
        HOT,
        lambda hot: _several([hot], "tag-literal"),
        lambda hot: _several([hot], "tag"),
        lambda: _several(HOT, "tag"),
        _describe_hot,
        "case",
    )


def _describe_hot(hot: Hot) -> Sequence[str]:
    larger = [each for each in HOT if (each.n, each.window) == (hot.n, WINDOWS[-1])]
    alone = sum(len(each.candidates("tag-literal")) < 2 for each in larger)
    return (
        f"{counted(hot.n, 'instance')}, windows of {counted(hot.window, 'tuple')}, of which"
        f" {hot.frequency} with the key {hot.key}: it is heavy in the second window.",
        "One draw for every q tuples, and q is as many as a key at theta has: its only candidate is"
        f" instance {hot.candidates('tag-literal')[0]}.",
        f"Longer windows do not help: with {larger[0].frequency} of {WINDOWS[-1]} tuples {alone} of"
        f" {len(larger)} keys have one candidate.",
    )


def _several(cases: Sequence[Hot], policy: str) -> Verdict:
    least = min(len(hot.candidates(policy)) for hot in cases)
    sentence = f"It has {counted(least, 'candidate')}."
    if len(cases) > 1:
        sentence = f"None of {len(cases)} keys has fewer than {least}."
    return decide(SEVERAL, least >= 2, sentence)


# -------------------------------------------------------------------------------------- memory

HOT_KEYS = range(1, 61)
CREWS = range(3, 7)
EACH = 8
"""Tuples of a window per instance."""
MEMORY = "k keys are kept in at most 2k + 5n^2 - 2n places"
PER_WINDOW = "k keys of a window are kept in at most 2k + 5n^2 - 10n places"


def memory() -> Findings:
    """Find the shortest stream, key after key, that takes more places than printed."""
    tried = 0
    for hot, n in product(HOT_KEYS, CREWS):
        case = _one_by_one(n, hot)
        trace = run(case)
        if (places := _places(case, trace)) > _printed(n, hot):
            break
        tried += 1
    sentences = (
        f"{counted(n, 'instance')} and {hot} keys, each of them alone for two windows of"
        f" {EACH * n} tuples: light in the first one, heavy in the second.",
        f"After {2 * hot} windows the keys have been at {places} places, counted key by key;"
        f" 2k + 5n^2 - 2n is {_printed(n, hot)}.",
        smaller(tried),
    )
    outcome = Outcome.BROKEN if places > _printed(n, hot) else Outcome.UNDETERMINED
    literal = Verdict(MEMORY, outcome, f"Kept for good, they are in {places} places.")
    same = _per_window([claims.judge(case, trace)], f"In each of {2 * hot} windows it holds.")
    return Findings(sentences, literal, same, _in_windows())


def _printed(n: int, k: int) -> int:
    return 2 * k + 5 * n * n - 2 * n


def _one_by_one(n: int, hot: int) -> Workload:
    keys = [f"k{number}" for number in range(hot) for _ in range(2 * EACH * n)]
    return stream(keys, GroupingConfig(n, "tag-literal", window_tuples=EACH * n))


def _places(case: Workload, trace: Trace) -> int:
    key_of = {event.seq: event.key for event in case.arrivals}
    return len({(key_of[route.seq], route.instance) for route in trace.of(Route)})


def _in_windows() -> Verdict:
    """Judge windows of many keys, under every policy that spreads heavy keys widely."""
    judged = []
    for n, policy in product(CREWS, ("w-choices", "tag-literal", "tag")):
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


# ------------------------------------------------------------------------------------- the table

TAG = "TAG, time-aware grouping for stream processing"
CONSTANT = "The imbalance is O(1), whatever the speeds of the instances are."


def _router_erratum(
    name: str, variant: str, promise: str, source: str, search: Callable[[], Findings]
) -> Erratum:
    return erratum(VARIANTS[variant], Kind.PRINTED, name, promise, f"{TAG}: {source}", search)


ERRATA: tuple[Erratum, ...] = (
    _router_erratum(
        "uniform-candidates",
        "uniform_if_light",
        CONSTANT,
        "keys that are not heavy go to one of two instances, by two hash functions",
        balance_errata.uniform,
    ),
    Erratum(
        Kind.PRINTED,
        "hidden-makespan",
        "Where the imbalance is small, the instances are used well.",
        f"{TAG}: balance is measured as I = (max l - mean l) / (mean l)",
        "I compares the largest work with the mean of what was done.",
        "rho compares it with what a fluid would take: max l * S / m - 1.",
        balance_errata.hidden,
    ),
    _router_erratum(
        "way-as-work",
        "with_propagation",
        CONSTANT,
        "the time of a tuple is said to include its propagation to the instance",
        balance_errata.propagation,
    ),
    _router_erratum(
        "one-candidate",
        "heavy_drawn",
        "A heavy key is spread over several instances.",
        "as many draws, by speed, as a key has multiples of q; they need not differ",
        one_candidate,
    ),
    Erratum(
        Kind.PRINTED,
        "memory",
        "k keys need at most 2k + 5n^2 - 2n entries.",
        f"{TAG}: memory, with at most 5n heavy keys; which are heavy changes from window to window",
        "Entries are counted as if the heavy keys and their candidates stayed the same.",
        "In a window there are at most 2k + 5n^2 - 10n; at its end they are merged and given up.",
        memory,
    ),
)
