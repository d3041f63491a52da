"""The promises of a room, tried on a system with generated streams: for the tests of a user."""

from collections.abc import Callable
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path

from model.checking.claims import Outcome, worst
from model.vocabulary import System, Workload
from model.vocabulary.settings import look_up
from straggler.errors import UsageError
from straggler.judging.counterexamples import FOLDER
from straggler.judging.judge import MODEL, judge, run_reference
from straggler.judging.levels import ANSWERS, Kinds, Scope
from straggler.judging.processes import Limits
from straggler.judging.systems import open_system
from straggler.judging.trial import Trial
from straggler.rooms import Case, find_room
from straggler.strategies.examples import collect, workloads

EFFORTS = {"dev": 25, "ci": 200, "nightly": 5_000}
"""Number of generated streams, by effort."""
TRIES = 20
"""Number of workloads drawn for each one that is used, at most."""


def assert_keeps_promises(
    system: System | str,
    room: str = "join",
    effort: str = "dev",
    *,
    kinds: Kinds | None = None,
    level: str = ANSWERS,
    accepts: Callable[[Workload], bool] = lambda _: True,
    seed: int = 0,
    folder: Path = FOLDER,
) -> None:
    """Try a system on generated streams, and raise ``AssertionError`` if it breaks a promise.

    The error describes the smallest stream found, or says that nothing was compared.

    Args:
        system: function from a workload to a :class:`Trace`, ``"MODULE:FACTORY"`` or
            ``"exec:COMMAND"`` (docs/your-system.md).
        room: room whose promises count, such as ``"slack"``.
        effort: number of streams: ``"dev"`` for 25, ``"ci"`` for 200, ``"nightly"`` for 5,000.
        kinds: kinds of steps that are compared; None compares all of the level.
        level: ``"answers"``, or ``"steps"`` for decisions as well.
        accepts: function that returns whether the system can run a workload, for a system that does
            not know every query.
        seed: whole number; the same seed draws the same streams.
        folder: folder for the smallest stream that breaks a promise.

    Examples:
        >>> from pathlib import Path
        >>> def finds_nothing(workload):
        ...     return Trace("mine", ())
        >>> assert_keeps_promises(finds_nothing, "join", folder=Path(folder))
        Traceback (most recent call last):
        ...
        AssertionError: ...
    """
    __tracebackhide__ = True  # pytest shows the line of the caller
    scope = Scope.of(find_room(room), kinds, level)
    number = look_up("effort", effort, EFFORTS)
    if not (isinstance(system, str) or callable(system)):
        allowed = "a System, 'MODULE:FACTORY' or 'exec:COMMAND'"
        raise UsageError(f"system is {system!r}; it must be {allowed}")
    name = system if isinstance(system, str) else _name_of(system)
    with ExitStack() as stack:
        tried = system
        if isinstance(tried, str):
            limits = Limits(whole_steps=level != ANSWERS)
            tried = stack.enter_context(open_system(tried, None, limits))(scope.room)
        trial = Trial(scope, tried, name, MODEL, accepts=accepts)
        outcomes = set()

        def is_asked(workload: Workload) -> bool:
            # What a chain of ours sheds is no answer to a query.
            decides = level == ANSWERS and bool(workload.config.get("decisions"))
            return not decides and accepts(workload)

        runs = (collect(workloads(room), number, seed + run) for run in range(TRIES))
        drawn = chain.from_iterable(runs)
        for workload in islice(filter(is_asked, drawn), number):
            expected = run_reference(scope.room, workload, MODEL, scope.step_types)
            case = Case(workload.name, workload.name, "", workload)
            judgement = judge(scope, case, tried, expected)
            if judgement.outcome is Outcome.BROKEN:
                report = "\n".join(trial.report(workload, folder))
                if not isinstance(system, str):
                    report = f"{report.removesuffix(' --trust')} --system MODULE:FACTORY"
                raise AssertionError(f"{name} breaks a promise of room {room}:\n{report}")
            outcomes.add(judgement.agreement.outcome)
    if not outcomes:
        raise AssertionError(f"undetermined: {name} accepts none of {TRIES * number:,} workloads")
    if Outcome.HOLDS not in outcomes:
        named = ", ".join(word.__name__.lower() for word in scope.step_types)
        raise AssertionError(f"{worst(outcomes)}: no step of kind {named} was compared")


def _name_of(system: System) -> str:
    return f"{system.__module__}:{getattr(system, '__qualname__', type(system).__qualname__)}"
