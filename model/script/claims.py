"""The promises of docs/script.md, section 10, judged on any trace.

Rules of this file:

* A trace is compared with the meaning of its workload, and its placement with the optimum that
  trying everything finds. Neither knows the sharing graph.
* Only a guard uses the graph: it counts the computations that are shared.
* Times without a result and rejections are judged by comparison with the reference alone.
* A trace may leave out which sensors a worker is sent; then nothing is said about placement.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from model.checking.accounts import row_cases, row_claim
from model.checking.claims import COMPLETE, Claim, ClaimSet, Judgement, Recording
from model.script.accounts import PLACES, below
from model.script.evidence import Evidence, evidence_of
from model.script.rules import RULES
from model.script.run import admit
from model.vocabulary import ScriptConfig, Trace, Workload
from model.vocabulary.script.config import REASON_LATE, Hosted, Rejected, Result, Undefined
from model.vocabulary.script.tree import Name, Number, Sensor, Union, walk

RESULTS = "results are what the workflows mean"
HOSTS = "workers are sent the sensors that are asked for"
LOAD = "no worker has more than the bound of LPT"
COMPONENTS_MAX = 8
"""Largest number of components whose assignments are all tried, for a trace."""

# ---------------------------------------------------------------------------------------- results


def _against_results(seen: Evidence) -> Iterator[str]:
    """Yield results that are missing or should not be there."""
    expected, found = (Counter(trace.of(Result)) for trace in (seen.expected, seen.trace))
    for step in sorted((expected - found).elements()):
        yield f"There is no {_described(step)}."
    for step in sorted((found - expected).elements()):
        yield f"There should be no {_described(step)}."


def _described(step: Result) -> str:
    return f"{step.name} = {step.value:g} of {step.workflow} at {step.ts_us:,} us"


# ------------------------------------------------------------------------- the placement of a trace


def _against_hosts(seen: Evidence) -> Iterator[str]:
    """Yield sensors that are sent twice, nowhere, to unknown workers, or without need."""
    found = Counter(seen.trace.of(Hosted))
    for each, times in sorted(found.items()):
        if times > 1:
            yield f"Worker {each.worker} is sent {each.sensor!r} {times} times."
        if not 0 <= each.worker < seen.config.workers:
            yield f"There is no worker {each.worker}, which is sent {each.sensor!r}."
    at = {each.sensor for each in found}
    for sensor in sorted(seen.config.asked_for - at):
        yield f"No worker is sent {sensor!r}."
    for sensor in sorted(at - seen.config.asked_for):
        yield f"Nobody asks for {sensor!r}, which is sent to a worker."


def _against_load(seen: Evidence) -> Iterator[str]:
    """Yield workers that are sent more tuples an hour than the bound of LPT allows."""
    pieces = [
        Fraction(sum(seen.per_hour[sensor] for sensor in piece))
        for piece in sensor_groups(seen.config)
    ]
    if 0 < len(pieces) <= COMPONENTS_MAX:
        bound = lpt_bound(pieces, seen.config.workers)
        loads: Counter[int] = Counter()
        for each in set(seen.trace.of(Hosted)):
            loads[each.worker] += seen.per_hour.get(each.sensor, 0)
        for worker, at in sorted(loads.items()):
            if at > bound:
                yield f"Worker {worker} is sent {at:,} tuples an hour, more than {float(bound):,g}."


def sensor_groups(config: ScriptConfig) -> list[frozenset[str]]:
    """Return the groups of sensors that are needed together, directly or not."""
    groups: dict[str, set[str]] = {}
    for workflow in config.workflows:
        behind: dict[str, frozenset[str]] = {}
        for statement in workflow.statements:
            behind[statement.name] = below(statement.expression, behind)
            for node, _ in walk(statement.expression):
                if not isinstance(node, Union | Sensor | Name | Number):
                    _join(groups, below(node, behind))
    return [frozenset(group) for group in {id(group): group for group in groups.values()}.values()]


def _join(groups: dict[str, set[str]], together: Iterable[str]) -> None:
    """Make some sensors one group, with all that is in a group with one of them."""
    joined: set[str] = set()
    for sensor in sorted(together):
        other = groups.setdefault(sensor, {sensor})
        if other is not joined:
            # The smaller group moves, so a sensor moves a few times at most.
            joined, smaller = (joined, other) if len(joined) > len(other) else (other, joined)
            joined |= smaller
            groups.update(dict.fromkeys(smaller, joined))


# ------------------------------------------------------------------------------------- the optimum


def assignments(pieces: int, workers: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to give pieces to workers; workers are alike, so their order is fixed.

    The first piece goes to the first worker, and the next new worker is always the next number.
    """

    def more(given: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(given) == pieces:
            yield given
            return
        for worker in range(min(workers, max(given, default=-1) + 2)):
            yield from more((*given, worker))

    return more(())


def least_makespan(loads: Sequence[Fraction], workers: int) -> Fraction:
    """Return the least possible load of the busiest worker, by trying every assignment."""
    return min(
        max(
            sum((load for load, at in zip(loads, given, strict=True) if at == worker), Fraction())
            for worker in range(workers)
        )
        for given in assignments(len(loads), workers)
    )


def lpt_bound(loads: Sequence[Fraction], workers: int) -> Fraction:
    """Return Graham's bound of LPT: the optimum times 4/3 - 1/(3n)."""
    return least_makespan(loads, workers) * (Fraction(4, 3) - Fraction(1, 3 * workers))


# ---------------------------------------------------------------------------------------- guards


def _late(rejected: Sequence[Rejected]) -> set[int]:
    return {each.seq for each in rejected if each.reason == REASON_LATE}


def _late_after_silence(seen: Evidence) -> int:
    """Return how many arrivals are late only because their sensor was silent."""
    if seen.config.idle_after_us is None:
        return 0
    _, rejected = admit(seen.workload, replace(seen.config, idle_after_us=None), RULES)
    return len(_late(seen.expected.of(Rejected)) - _late(rejected))


def _sensors_at_several_workers(seen: Evidence) -> int:
    workers = Counter(each.sensor for each in set(seen.trace.of(Hosted)))
    return sum(at > 1 for at in workers.values())


# ------------------------------------------------------------------------------------- the claims


def _unrecorded_hosts(seen: Evidence) -> str:
    if seen.config.asked_for and not seen.trace.of(Hosted):
        return "It is not recorded which sensors a worker is sent."
    return ""


CLAIMS: ClaimSet[Evidence] = ClaimSet(
    (
        Claim(
            RESULTS,
            "shared computations",
            _against_results,
            needs=((Result,),),
            of_answers=True,
        ),
        Claim(
            HOSTS,
            "sensors at several workers",
            _against_hosts,
            gap=_unrecorded_hosts,
            needs=((Hosted,),),
        ),
        Claim(
            LOAD,
            "components for several workers",
            _against_load,
            gap=_unrecorded_hosts,
            needs=((Hosted,),),
        ),
        row_claim(
            lambda seen: seen.accounts, "late arrivals", ((Result,), (Undefined,), (Rejected,))
        ),
    ),
    {
        "shared computations": lambda seen: seen.graph.written - len(seen.graph.computed),
        "undefined times": lambda seen: len(seen.trace.of(Undefined)),
        "late arrivals": lambda seen: len(_late(seen.trace.of(Rejected))),
        "late after a silence": _late_after_silence,
        "sensors at several workers": _sensors_at_several_workers,
        "components for several workers": lambda seen: int(
            seen.config.workers > 1 and len(sensor_groups(seen.config)) > 1
        ),
        **row_cases(lambda seen: seen.accounts, *PLACES),
    },
)


def judge(workload: Workload, trace: Trace, recording: Recording = COMPLETE) -> Judgement:
    """Judge every promise on one trace.

    A promise about steps that ``recording`` lacks is undetermined.
    """
    return CLAIMS.judge(evidence_of(workload, trace), recording)
