"""Parts that every room wires alike: its cases, limits, pipeline and guard.

Rules of this file:

* Pipelines are imported when they are used: pyspark takes a second, and most commands do without.
* A figure without observations is ``None``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from model.checking.claims import Outcome, Verdict
from model.vocabulary import System, Trace, Workload
from model.vocabulary.settings import Settings
from model.vocabulary.workload import ISO
from straggler.errors import UsageError
from straggler.inputs.columns import DEFAULT_COLUMNS
from straggler.inputs.inputs import PUBLISHED, missing_recording, recordings_by_name
from straggler.inputs.tables import Recording, cuts_into
from straggler.options import Arguments
from straggler.rooms import Case, SkippedInput

# ----------------------------------------------------------------------------------------- cases


def why_missing(name: str) -> str | None:
    """Return why input ``name`` cannot be used, if it is a recording that is absent."""
    is_absent = name in PUBLISHED and name not in recordings_by_name()
    return missing_recording(name) if is_absent else None


def cases_of(
    args: Arguments,
    usual: Iterable[str],
    read: Callable[[str], Iterator[Case]],
    reason: Callable[[str], str | None] = why_missing,
) -> Iterator[Case | SkippedInput]:
    """Yield the cases that ``read`` makes of inputs: those of ``--input``, or the ``usual`` ones.

    A usual input that is absent is yielded as :class:`SkippedInput`; ``reason`` says why.
    """
    for name in args.input or usual:
        if not args.input and (why := reason(name)) is not None:
            yield SkippedInput(name, why)
        else:
            yield from read(name)


def make_case(
    room: str,
    source: Recording,
    query: Settings,
    title: str,
    args: Arguments,
    *,
    batches: int,
) -> Case:
    """Return the comparison of one query on one input.

    Arrivals are cut into ``--batches`` micro-batches, or ``batches`` without that option.
    """
    has_files = source.set_aside and (args.input or getattr(args, "r", None))
    workload = Workload(
        room,
        source.events,
        query.to_json(),
        cuts_into(len(source.events), args.batches or batches),
        seed=args.seed,
        name=f"{source.name}, {title}",
        time_unit=(args.time_unit or DEFAULT_COLUMNS.time_unit) if has_files else ISO,
    )
    return Case(source.name, source.label, title, workload, source.set_aside)


# ---------------------------------------------------------------------------------------- limits


def refuse_larger(settings: Mapping[str, str], largest: Mapping[str, float]) -> None:
    """Raise :class:`UsageError` for a setting above its limit."""
    for key, text in settings.items():
        if key in largest and _parse(text) > largest[key]:
            raise UsageError(f"{key} is {text}; at most {largest[key]} is allowed")


def _parse(text: str) -> float:
    """Return ``text`` as a number; 0 for any other text, which its setting refuses."""
    try:
        return float(text)
    except ValueError:
        return 0.0


# ------------------------------------------------------------------------------------- producers


def spark_pipeline(find: Callable[[], Callable[[], System]]) -> Callable[[], System]:
    """Return a function that returns the room's Spark pipeline in the running session.

    ``find`` imports the room on Spark, and returns its ``make_system``.
    """

    def make() -> System:
        from spark_impl.runtime.session import EnvironmentProblem

        pipeline = find()()

        def run(workload: Workload, /) -> Trace:
            try:
                return pipeline(workload)
            except EnvironmentProblem as problem:
                raise UsageError(str(problem)) from problem

        return run

    return make


def judge_guard(
    guard: str,
    case: Case,
    lacking: str,
    occurred: str,
    hint: str = "",
    untested: str = "the cases that matter never came up",
) -> Verdict:
    """Return the verdict on whether the interesting cases came up.

    ``lacking`` says what did not occur (empty: nothing is lacking), ``occurred`` what did, and
    ``untested`` what was not put to the test therefore.
    """
    if not lacking:
        return Verdict(guard, Outcome.HOLDS, occurred)
    sentence = f"{lacking} in {case.input}: {untested}{hint}"
    return Verdict(guard, Outcome.UNDETERMINED, sentence)
