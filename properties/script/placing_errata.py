"""Components that all go to one worker, because nobody writes down what it has.

Rules of this file:

1. Everything is tried in a fixed order, fewer components first, then fewer workers: nothing that
   was tried before a counterexample breaks the promise.
2. The cap is so high that nothing is split, for a split mends what went wrong before it.
"""

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from typing import NamedTuple

from model.checking.claims import Outcome, Verdict
from model.script import make_system
from model.script.claims import LOAD, judge
from model.script.variants import VARIANTS
from model.vocabulary import ScriptConfig, Trace, Workload
from model.vocabulary.script import Hosted, Sensor, Statement, Window, Workflow
from properties.errors import counted
from properties.judging.smallest_stream import promise_among, smallest
from properties.pages.errata import Findings

COMPONENTS, WORKERS, RATES = range(1, 6), range(2, 5), (1, 2, 3, 5)
HOUR_MS = 3_600_000


class Crew(NamedTuple):
    """Sensors, each with a script of its own, and workers for them."""

    per_hour: tuple[int, ...]
    workers: int

    def workload(self) -> Workload:
        """Nothing arrives: who is sent what is known before."""
        sensors = tuple((f"s{number}", rate) for number, rate in enumerate(self.per_hour))
        flows = tuple(
            Workflow(f"of_{name}", (Statement("x", Window("avg", Sensor(name), HOUR_MS, HOUR_MS)),))
            for name, _ in sensors
        )
        config = ScriptConfig(flows, sensors, self.workers, cap_percent=100 * self.workers)
        return Workload("script", (), config.to_json())


def _crews() -> Iterator[Crew]:
    for n, workers in product(COMPONENTS, WORKERS):
        for per_hour in combinations_with_replacement(RATES, n):
            yield Crew(per_hour, workers)


def uncharged() -> Findings:
    """The first crew whose workers have unequal loads, although they need not."""
    streams = (crew.workload() for crew in _crews())
    bug = VARIANTS["target_not_charged"]
    findings = smallest(bug, make_system(), judge, streams, _told, _scope)
    *told, tried = findings.counterexample
    return findings._replace(counterexample=(*told, tried.replace("streams", "crews")))


def _told(workload: Workload, trace: Trace) -> tuple[str, ...]:
    config = ScriptConfig.from_json(workload.config)
    sent = ", ".join(f"{name} {counted(rate, 'tuple')}" for name, rate in config.sensors)
    at = [
        " and ".join(each.sensor for each in trace.of(Hosted) if each.worker == worker)
        for worker in range(config.workers)
    ]
    gets = [f"worker {worker} gets {sensors or 'nothing'}" for worker, sensors in enumerate(at)]
    return (
        f"{counted(len(config.sensors), 'sensor')}, each with a script of its own, on"
        f" {config.workers} workers; in an hour come from {sent}.",
        f"By the rule as written {', '.join(gets)}.",
    )


def _scope() -> Verdict:
    system = make_system()
    crews = list(_crews())
    for crew in crews:
        workload = crew.workload()
        verdict = promise_among(judge(workload, system(workload)).verdicts, LOAD)
        if verdict.outcome is not Outcome.HOLDS:
            return verdict
    sentence = (
        f"The bound of LPT is kept in {len(crews):,} cases: all of up to {COMPONENTS[-1]} scripts"
        f" on up to {WORKERS[-1]} workers, with {len(RATES)} rates."
    )
    return Verdict(LOAD, Outcome.HOLDS, sentence)
