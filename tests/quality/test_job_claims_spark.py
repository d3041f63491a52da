"""Claims break on the traces of Spark jobs whose workers and driver have a planted bug.

The bugs of Spark's operators are planted once more, in queries of Spark, with some that show only
there. A workload that shows a bug is found in process, before its test begins: the record of
:mod:`tests.harness.broken_claims` then holds what breaks on Spark alone.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks._join_chain import (
    FILES,
    STEP_US,
    bands,
    config_of,
    header_bytes,
    inputs,
    measure_chain,
    tuple_bytes,
)
from model.checking.claims import Outcome, Recording
from model.grouping import balance_claims
from model.join.control import start
from model.join.decision_claims import ControlLog, Logged, judge_log
from model.join.load import Traffic
from model.join.load_claims import Shared, judge_bytes, judge_shared
from model.vocabulary import JoinConfig, Trace
from model.vocabulary.join import Match
from model.vocabulary.windows import Correction, Correlation, Final, Rejected
from properties.forks import first_in_forks
from spark_impl.join import control, in_process
from spark_impl.join.chain import Chain
from spark_impl.join.match_file import MatchFile
from spark_impl.join.store import load_store
from spark_impl.join.system import rows_of
from spark_impl.join.worker import Worker
from spark_impl.windows import answers, correction, correlation, recompute
from spark_impl.windows import kernel as windows
from spark_impl.windows.correction import Corrections
from straggler.rooms import find_room
from tests.quality import test_operator_claims as operators
from tests.quality.claim_bugs import Bug, broken, shown_by, workload_of, workloads
from tests.quality.mistakes import Mistake
from tests.quality.test_grouping_balance import CASE, WEIGHTS
from tests.spark_impl.test_join_load import RULES, curve_case, meter

LATER_REVISIONS = Bug(
    "revisions begin with 2",
    ("one writer",),
    Mistake(recompute.revision_numbers, "+ 1", "+ 2"),
)
REFUSED_ROWS = Bug(
    "a window with a rejected row is exact",
    ("exact means all rows",),
    Mistake(answers.current_answers, 'F.col("n_refused") > 0', "F.lit(False)"),
)

JOBS: Mapping[str, tuple[Bug, ...]] = {
    "slack": (
        Bug(
            "ranks of delay and value are added",
            ("delay and value are compared as they came",),
            Mistake(correlation.correlate, "(x * y, x * x, y * y)", "(x + y, x * x, y * y)"),
        ),
        LATER_REVISIONS,
        REFUSED_ROWS,
    ),
    "watermark": (
        Bug(
            "the first answer is the final one",
            ("final answers are the latest",),
            Mistake(answers._latest_answers, "F.max_by(", "F.min_by("),
        ),
        Bug(
            "a correction forgets to clear a pair",
            ("nothing owed after the flush",),
            Mistake(
                Corrections.run,
                'store.write("cleared", batch, covered)',
                'store.write("cleared", batch, covered.slice(1))',
            ),
        ),
        Bug(
            "late pairs may lie any time apart",
            ("corrections do not wait",),
            Mistake(correction._reason, "newest - oldest > settings.gamma_us", "False"),
        ),
        LATER_REVISIONS,
        REFUSED_ROWS,
    ),
    "join": (
        Bug(
            "every pair has epoch 0",
            ("no pair before its tuples",),
            Mistake(MatchFile.write, "np.full(len(r_id), self._epoch)", "np.full(len(r_id), 0)"),
        ),
    ),
}
"""Bugs in what no operator does in process, by room."""

SHOW_JOBS: Mapping[str, Callable[[Trace], bool]] = {
    "slack": lambda trace: any(each.cross for each in trace.of(Correlation)),
    "watermark": lambda trace: {each.reason for each in trace.of(Correction)} == {"gamma", "flush"},
    "join": lambda trace: any(each.batch for each in trace.of(Match)),
}
"""Whether the model's trace of a workload has what the bugs of :data:`JOBS` change, by room."""


def lacks_a_row(trace: Trace) -> bool:
    """Return whether an answer lacks a row that was rejected, and perhaps nothing else."""
    return bool(trace.of(Rejected)) and not all(final.exact for final in trace.of(Final))


UNSEEN = {
    Worker._take_in: "connections of Spark's workers repeat no message",
    Worker._join_in: "blocks of both streams need not be on their way at once",
    in_process.results_of: "Spark's workers write files",
    windows._MicroBatch._stretch: "corrections refuse a history with less than was counted",
}
"""Functions with a mistake that a job does not show, or not always, and the reason."""

BUGS = {
    room: [each for each in bugs if each.mistake.function not in UNSEEN]
    for room, bugs in operators.BUGS.items()
}
"""Bugs of Spark's operators that jobs show as well, by room."""

CASES = [(room, bug) for bugs in (BUGS, JOBS) for room in bugs for bug in bugs[room]]
QUICK = {
    ("slack", "a judged window has a tuple too many"),
    ("watermark", "the wait is a microsecond too short"),
    ("join", "near is far"),
    ("grouping", "every other route is lost"),
    ("script", "the sides of a difference may be exchanged"),
}
"""A bug of each room that a small workload shows."""


@pytest.fixture
def numbers(room: str, bug: Bug) -> list[int]:
    """Return the numbers of workloads that show a bug.

    What breaks while they are looked for is not recorded, because the test has not begun.
    """
    found = find_room(room)
    if bug in JOBS.get(room, ()):
        traces = enumerate(map(found.reference(), workloads(room)))
        shows = lacks_a_row if bug is REFUSED_ROWS else SHOW_JOBS[room]
        return [next(number for number, trace in traces if shows(trace))]
    silent = frozenset(found.step_types).difference(found.in_process_step_types)
    return [number for number, _ in shown_by(room, found.in_process, bug, Recording(silent))]


@pytest.mark.parametrize(
    ("room", "bug"),
    [
        pytest.param(
            room,
            bug,
            id=f"{room}: {bug.name}",
            marks=() if (room, bug.name) in QUICK else pytest.mark.long,
        )
        for room, bug in CASES
    ],
)
def test_a_bug_of_a_job_breaks_its_claims(
    spark: SparkSession, room: str, bug: Bug, numbers: list[int]
) -> None:
    run, left = find_room(room).spark(), set(bug.claims)
    for number in numbers:
        workload = workload_of(room, number)
        with planted(spark, bug.mistake):
            wrong = run(workload)
        left -= broken(room, workload, wrong)
        assert broken_without_a_bug(room, number) == set()
    assert not left, f"{bug.name} does not break {left}"


@contextmanager
def planted(spark: SparkSession, mistake: Mistake) -> Iterator[None]:
    """Let the driver and the workers of jobs make a mistake."""
    if not str(spark.sparkContext.master).startswith("local"):
        pytest.skip("workers of a cluster are no forks of ours, and would make no mistake")
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        first_in_forks(spark.sparkContext.environment, mistake.keep),
    ):
        mistake.plant(monkeypatch)
        yield


@cache
def broken_without_a_bug(room: str, number: int) -> set[str]:
    """Return the claims that are broken on the trace of a right job."""
    workload = workload_of(room, number)
    return broken(room, workload, find_room(room).spark()(workload))


# ------------------------------------------------------------------------------ claims of their own


@pytest.mark.long
def test_lost_routes_of_jobs_are_less_work_than_candidates_allow(spark: SparkSession) -> None:
    def outcome() -> Outcome:
        trace = find_room("grouping").spark()(CASE)
        verdicts = balance_claims.check(CASE, trace, WEIGHTS, operators.DELTA)
        return next(each.outcome for each in verdicts if each.claim == balance_claims.LOWER)

    assert outcome() is Outcome.HOLDS
    with planted(spark, operators.LOST):
        wrong = outcome()
    assert wrong is Outcome.BROKEN


@pytest.mark.long
def test_a_controller_of_jobs_that_rounds_down_breaks_its_claim(
    spark: SparkSession, tmp_path: Path
) -> None:
    def outcome(store: Path) -> Outcome:
        case = curve_case()
        config = JoinConfig.from_json(case.config)
        chain = Chain(spark, config, store, load=RULES, meter=meter)
        for events in case.batches():
            chain.advance(rows_of(spark, events))
        place, view = load_store(store)
        loads = [done.load for done in place.commits(view) if done.load is not None]
        log = ControlLog(RULES, start(RULES, RULES.least), [Logged(*each) for each in loads])
        return judge_log(log).verdicts[0].outcome

    assert outcome(tmp_path / "right") is Outcome.HOLDS
    with planted(spark, Mistake(control.decide, "rules.aim + 0.5", "rules.aim")):
        wrong = outcome(tmp_path / "wrong")
    assert wrong is Outcome.BROKEN


WORKERS, BLOCK_SIZE = 2, 256
"""Smaller blocks stay farther below the formula, because several go in one frame."""
TUPLES, WINDOW_US = 20_000, 2_000 * STEP_US
SENT_AGAIN = Mistake(
    Worker.forward,
    "self.outbox.append((lane.ahead, block))",
    "self.outbox.extend([(lane.ahead, block)] * (1 + len(self._config.queries)))",
)
"""A block is sent once more for every query."""


@pytest.mark.long
def test_blocks_that_jobs_send_again_break_the_claims_on_bytes(spark: SparkSession) -> None:
    def outcomes() -> set[Outcome]:
        loads = {}
        for queries in (1, 4):
            config = config_of(WORKERS, BLOCK_SIZE, bands(queries))
            loads[queries] = measure_chain(spark, place, replace(config, window_us=WINDOW_US))
        one = loads[1]
        traffic = Traffic(one.crossed, WORKERS, tuple_bytes(), header_bytes(), headers=1)
        shared = [Shared(number, each.bytes_sent, each.pairs) for number, each in loads.items()]
        formula = judge_bytes(traffic, one.crossed / one.blocks, one.bytes_sent)
        return {each.outcome for each in (*formula.verdicts, *judge_shared(shared).verdicts)}

    with inputs(TUPLES, FILES) as place:
        assert outcomes() == {Outcome.HOLDS}
        with planted(spark, SENT_AGAIN):
            wrong = outcomes()
    assert wrong == {Outcome.BROKEN}
