"""Verdicts on one workload, for programs that judge a system without the command line."""

from model.vocabulary import System, Workload
from model.vocabulary.trace import kind_of
from straggler.judging.judge import Judgement, judge
from straggler.judging.levels import ANSWERS, Scope
from straggler.judging.references import BOTH, run_reference
from straggler.rooms import Case, find_room


def judge_workload(
    workload: Workload,
    system: System,
    *,
    step_types: tuple[type, ...] = (),
    level: str = ANSWERS,
    reference: str = BOTH,
) -> Judgement:
    """Run a workload on ``system`` and on the reference, and return the verdicts.

    The workload names its room; :func:`straggler.simulation.simulate` makes workloads.
    ``step_types`` are the types of steps that are compared, by default all of the level.
    ``level`` is ``answers`` or ``steps``, and ``reference`` is ``sim``, ``model`` or ``both``, as
    in ``straggler diff``. Raise :class:`straggler.errors.UsageError` for a workload that the
    reference cannot run, and for step types that the level does not compare.
    """
    room = find_room(workload.room)
    room.refuse(workload)
    scope = Scope.of(room, ",".join(map(kind_of, step_types)) or None, level)
    expected = run_reference(room, workload, reference, scope.step_types)
    case = Case(workload.name, workload.name, "", workload, in_order=False)
    return judge(scope, case, system, expected)
