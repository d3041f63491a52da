"""Trials of engines: what is broken on drawn workloads, made small, and tried without the adapter.

Rules of this file:

* A promise is *broken* only if a script of the engine alone, without its adapter, reproduces a
  defect. Otherwise the cell says that nothing was reproduced, and does not count.
* An adapter that fails, refuses or is silent has *failed*; a promise is broken by that only if a
  finding names this very case, because the fault may be the adapter's.
* Cases are counted in the trace of the model: an engine cannot talk itself into having been tested.
* Everything that the page shows is in the results, so that the page can be written without engines.
"""

import shlex
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing

from model.checking.claims import Outcome
from model.vocabulary import System, Workload
from straggler.conformance.engines import Asked, Engine, Finding
from straggler.conformance.judgements import Answered, Judged
from straggler.conformance.promises import PROMISES, count_cases
from straggler.conformance.results import CLOSED, FAILED, REPRODUCED, Case, Results, Trail
from straggler.errors import counted
from straggler.judging.judge import AGREEMENT, broken_sentences, run_model, run_system
from straggler.judging.processes import Limits, ProcessSystem
from straggler.judging.trial import NOT_AGAIN, describe, in_words, shrink

TRAIL_S = 300
"""Time for a script (s)."""
TIMEOUTS_MAX = 2
"""Workloads without an answer in time after which a case ends."""
SHOWN_SENTENCES = 4


Report = Callable[[str], None]
"""Function that is told what was done last, because all of an engine may take an hour."""


def judge_engine(engine: Engine, number: int, seed: int, report: Report) -> Results:
    """Try the findings of an engine, and judge it on ``number`` workloads a case.

    Raise :class:`straggler.errors.UsageError` if the environment lacks the engine.
    """
    engine.refuse_absent()
    for asked in engine.cases:
        _draw(asked, 1, seed)  # refuses bad settings before an hour has passed
    trails, cases = list[Trail](), list[Case]()
    for finding in engine.findings:
        trails.append(follow_trail(engine, finding))
        report(f"{engine.name}: {finding.script} {trails[-1].outcome}")
    with closing(open_engine(engine)) as system:
        for asked in engine.cases:
            cases.append(judge_case(asked, system, number, seed))
            report(f"{engine.name}: {asked.promise} {cases[-1].outcome}")
    return Results(engine.name, engine.version, seed, tuple(cases), tuple(trails))


def open_engine(engine: Engine) -> ProcessSystem:
    """Return an engine as a System, whose process starts with the first workload."""
    words = [str(engine.python.absolute()), "-u", str(engine.adapter)]
    return ProcessSystem(shlex.join(words), Limits(engine.timeout_s * 1_000_000))


def follow_trail(engine: Engine, finding: Finding) -> Trail:
    """Run the script of a finding: it exits with 0 if the engine behaves as the finding says."""
    words = [str(engine.python.absolute()), str(engine.trail(finding))]
    try:
        run = subprocess.run(
            words, capture_output=True, text=True, timeout=TRAIL_S, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return Trail(finding, FAILED, f"no end within {TRAIL_S} s")
    outcome = {0: REPRODUCED, 1: CLOSED}.get(run.returncode, FAILED)
    if outcome == CLOSED and "Traceback (most recent call last)" in run.stderr:
        outcome = FAILED  # Python ends with 1 as well
    output = run.stdout.strip() or run.stderr.strip()[-500:]
    return Trail(finding, outcome, output)


# --------------------------------------------------------------------------------------- a case


def _draw(asked: Asked, number: int, seed: int) -> Sequence[Workload]:
    """Return the workloads of a case; only this part of the command needs Hypothesis."""
    from straggler.conformance.draws import draw_workloads

    return draw_workloads(asked, number, seed)


def judge_case(asked: Asked, system: ProcessSystem, number: int, seed: int) -> Case:
    """Judge a system on the workloads of a case; one that does not answer in time is asked twice.

    The counts are those of the workloads that were tried.
    """
    scope = PROMISES[asked.promise].scope
    counts: Counter[str] = Counter()
    wrong: list[Workload] = []
    failed: list[Workload] = []
    unclear: list[str] = []
    timeouts_max = system.timeouts + TIMEOUTS_MAX
    for workload in _draw(asked, number, seed):
        counts.update(count_cases(workload, run_model(scope.room, workload)))
        tried = try_workload(asked, system, workload)
        if tried.broken:
            (failed if tried.has_failed else wrong).append(workload)
        unclear += tried.undetermined[:1]
        if system.timeouts == timeouts_max:
            break
    if not wrong and not failed:
        return _unbroken(asked, counts, unclear)
    is_failure = not wrong
    least = min(wrong or failed, key=lambda workload: len(workload.arrivals))
    is_hanging = system.timeouts == timeouts_max
    small = least if is_hanging else make_small(asked, system, least, is_failure)
    sentences = try_workload(asked, system, small).broken or (NOT_AGAIN,)
    said = sentences[0].removeprefix(f"{AGREEMENT}: ").replace("the system ", "the adapter ", 1)
    number_broken = len(wrong) + len(failed)
    of_all = f"{number_broken:,} of {counted(counts['workloads'], 'workload')}"
    return Case(
        asked.promise,
        asked.how,
        Outcome.BROKEN,
        f"It breaks on {of_all}.",
        dict(counts),
        number_broken,
        (*describe(small, _settings(small)), *sentences[:SHOWN_SENTENCES]),
        small.to_json(),
        said if is_failure else "",
    )


def _unbroken(asked: Asked, counts: Counter[str], unclear: Sequence[str]) -> Case:
    """Return the outcome of a case without a counterexample."""
    excused = set() if asked.redeliveries else {"redeliveries"}
    guards = PROMISES[asked.promise].guards
    lacking = [name for name in guards if not counts[name] and name not in excused]
    outcome, sentence = Outcome.HOLDS, "No counterexample was found."
    if unclear:
        outcome = Outcome.UNDETERMINED
        sentence = f"In {counted(len(unclear), 'stream')} it is not clear: {unclear[0]}"
    if lacking:
        outcome = Outcome.UNDETERMINED
        sentence = f"The streams had no {' and no '.join(lacking)}."
    return Case(asked.promise, asked.how, outcome, sentence, dict(counts), 0, (), None)


def try_workload(asked: Asked, system: System, workload: Workload) -> Judged:
    """Run a workload on a system, and judge the promise that a case asks for."""
    promise = PROMISES[asked.promise]
    room = promise.scope.room
    observed, failure = run_system(room, system, workload)
    if failure is not None:
        return Judged(broken_sentences([failure]), has_failed=True)
    expected = run_model(room, workload)
    return promise.judge(Answered(promise.scope, workload, expected, observed, asked.late_by))


def make_small(
    asked: Asked, system: ProcessSystem, workload: Workload, is_failure: bool
) -> Workload:
    """Return the smallest workload found that breaks a promise.

    A failure stays a failure, and wrong answers stay wrong answers.
    """
    before = system.timeouts

    def broken(candidate: Workload) -> tuple[str, ...]:
        tried = try_workload(asked, system, candidate)
        return tried.broken if tried.has_failed == is_failure else ()

    if not broken(workload):
        return workload
    room = PROMISES[asked.promise].scope.room
    return shrink(workload, broken, room.simpler, ends=lambda: system.timeouts > before)


def _settings(workload: Workload) -> dict[str, str]:
    config = workload.config
    return dict(in_words(name, config[name]) for name in _SHOWN_SETTINGS if name in config)


_SHOWN_SETTINGS = (
    "size_us",
    "slide_us",
    "aggregate",
    "keyed",
    "fixed_slack_us",
    "window_us",
    "queries",
    "lateness_us",
    "instances",
)
