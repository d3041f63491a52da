"""The rule by which workers go, as the source states it, and the right way round.

Rules of this file:

1. The load is constant, so that what is right needs no argument: after the wait a chain that had
   too little to do has fewer workers, and any other has as many as before.
2. Every chain of up to ``WORKERS`` workers is tried with every utilisation up to tau2, in
   hundredths.
"""

from collections.abc import Callable, Iterable

from model.checking.claims import Outcome, Verdict
from model.join.load import Limits, Watch, is_idle, watch
from properties.errors import counted
from properties.pages.errata import Findings

LIMITS = Limits(0.25, 0.75, 0.75)
WORKERS = 16
STEADY = tuple(
    (workers, hundredths / 100) for workers in range(1, WORKERS + 1) for hundredths in range(1, 76)
)
"""Workers and their utilisation at the start, the smallest chain first."""
STEP_S, HOUR_S = 10, 3_600
CASE_STUDY = ((120, 3.08), (HOUR_S, 1.5))
"""Until which second, and how many workers the load would keep busy; it starts with 4."""
PROMISE = "workers go when there is too little to do, and only then"

Idle = Callable[[float, Limits], bool]


def turned_round(utilisation: float, limits: Limits) -> bool:
    """The condition under which workers are removed, as it is written."""
    return utilisation > limits.tau0


def counts(workers: int, load: Iterable[tuple[int, float]], idle: Idle) -> list[int]:
    """Numbers of workers, each as long as it lasts, under a load given as in ``CASE_STUDY``."""
    seen, found, now_s = Watch(), [workers], 0
    for until_s, busy in load:
        while now_s < until_s:
            seen, wanted = watch(seen, now_s * 1_000_000, found[-1], busy / found[-1], LIMITS, idle)
            if wanted != found[-1]:
                found.append(wanted)
            now_s += STEP_S
    return found


def in_an_hour(workers: int, utilisation: float, idle: Idle) -> int:
    """Workers after an hour of the load that the utilisation means at the start."""
    return counts(workers, ((HOUR_S, workers * utilisation),), idle)[-1]


def _is_right(workers: int, utilisation: float, idle: Idle) -> bool:
    after = in_an_hour(workers, utilisation, idle)
    if workers > 1 and utilisation < LIMITS.tau0:
        return after < workers
    return after == workers


def scaling() -> Findings:
    """The smallest chains that the rule as written treats wrongly, and the case study."""
    wrong = [case for case in STEADY if not _is_right(*case, turned_round)]
    keeps = next(case for case in wrong if case[1] < LIMITS.tau0)
    loses = next(case for case in wrong if in_an_hour(*case, turned_round) < case[0])
    told = (
        f"tau0 = {LIMITS.tau0}, tau* = {LIMITS.aim}, tau1 = tau2 = {LIMITS.tau2}.",
        *(_outcome(*case) for case in (keeps, loses)),
        f"{len(wrong):,} of {len(STEADY):,} chains of 1 to {WORKERS} workers go wrong.",
        "The case study: 4 workers, a load that would keep 3.08 of them busy, after two minutes"
        " 1.5.",
        f"As written: {_arrows(turned_round)} workers. Corrected: {_arrows(is_idle)} workers.",
    )
    literal = Verdict(PROMISE, Outcome.BROKEN, _outcome(*keeps))
    return Findings(told, literal, _kept((keeps, loses)), _kept(STEADY))


def _kept(cases: Iterable[tuple[int, float]]) -> Verdict:
    """Whether the right rule is right in every case, and in the case study."""
    tried = list(cases)
    fewer = sum(in_an_hour(*case, is_idle) < case[0] for case in tried)
    good = all(_is_right(*case, is_idle) for case in tried)
    good = good and counts(4, CASE_STUDY, is_idle) == [4, 8, 4]
    sentence = (
        f"Of {len(tried):,} chains {fewer:,} lose workers and {len(tried) - fewer:,} keep them,"
        " each as its utilisation asks; the case study goes from 4 to 8 to 4."
    )
    return Verdict(PROMISE, Outcome.HOLDS if good and fewer else Outcome.BROKEN, sentence)


def _outcome(workers: int, utilisation: float) -> str:
    after = in_an_hour(workers, utilisation, turned_round)
    return (
        f"A chain of {counted(workers, 'worker')} with a utilisation of {utilisation:.2f} has"
        f" {counted(after, 'worker')} after an hour of that load."
    )


def _arrows(idle: Idle) -> str:
    return " -> ".join(map(str, counts(4, CASE_STUDY, idle)))
