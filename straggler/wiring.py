"""Parts that every room wires alike: pipeline and operator by its name, and its guard.

Pipelines are imported when they are used: pyspark takes a second, and most commands do without it.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TypeVar

from model.checking.claims import Outcome, Verdict
from model.vocabulary import Step, System, Trace, Workload
from model.vocabulary.settings import PlainData
from straggler.errors import UsageError
from straggler.rooms import Alternatives, Case

RunT = TypeVar("RunT")


def spark_pipeline(room: str) -> Callable[[], System]:
    """Return a function that returns the room's Spark pipeline in the running session."""

    def make() -> System:
        from spark_impl.runtime.session import EnvironmentProblem

        pipeline: System = import_module(f"spark_impl.{room}").make_system()

        def run(workload: Workload, /) -> Trace:
            try:
                return pipeline(workload)
            except EnvironmentProblem as problem:
                raise UsageError(str(problem)) from problem

        return run

    return make


def spark_operator(room: str) -> System:
    """Return the part of the room's Spark pipeline that runs in process, without Spark."""

    def run(workload: Workload, /) -> Trace:
        trace: Trace = import_module(f"spark_impl.{room}").run_in_process(workload)
        return trace

    return run


def judge_guard(guard: str, case: Case, lacking: str, occurred: str, hint: str = "") -> Verdict:
    """Return the verdict on whether the interesting cases came up.

    ``lacking`` says what did not occur (empty: nothing is lacking), ``occurred`` what did.
    """
    if not lacking:
        return Verdict(guard, Outcome.HOLDS, occurred)
    sentence = f"{lacking} in {case.input}: the cases that matter never came up{hint}"
    return Verdict(guard, Outcome.UNDETERMINED, sentence)


def timed_run(
    refuse: Callable[[Mapping[str, str]], None], run: Callable[[Mapping[str, str], int], RunT]
) -> Callable[[Mapping[str, str], int], RunT]:
    """Return a function that makes a timed run with settings and a seed, after ``refuse``."""

    def simulate(settings: Mapping[str, str], seed: int) -> RunT:
        refuse(settings)
        return run(settings, seed)

    return simulate


def compare_sides(
    columns: Mapping[str, tuple[str, str]], sides: Iterable[Step], remark: str
) -> Alternatives:
    """Return a table with a row for each of ``sides``, which are named tuples.

    ``columns`` maps a heading to a field and its format; ``ms`` turns microseconds into
    milliseconds. A field without a value is shown as ``-``.
    """
    data = tuple(side._asdict() for side in sides)
    rows = tuple(
        tuple(_write(row[field], form) for field, form in columns.values()) for row in data
    )
    return Alternatives(tuple(columns), rows, data, remark)


def _write(value: PlainData, form: str) -> str:
    if value is None:
        return "-"
    return f"{value / 1e3:,.1f}" if form == "ms" else format(value, form)
