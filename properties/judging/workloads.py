"""Verdicts on one workload, for programs that judge a system without the command line."""

from model.vocabulary import System, Workload
from properties.judging.judge import Judgement, judge
from properties.judging.references import BOTH, run_reference
from properties.rooms import Case, find_room


def judge_workload(
    workload: Workload,
    system: System,
    *,
    step_types: tuple[type, ...] = (),
    reference: str = BOTH,
) -> Judgement:
    """Run a workload on ``system`` and on the reference, and return the verdicts.

    The workload names its room; :func:`properties.simulation.simulate` makes workloads.
    ``step_types`` are the types of steps that are compared, by default all of the room.
    ``reference`` is ``sim``, ``model`` or ``both``, as in ``straggler diff``. Raise
    :class:`properties.errors.UsageError` for a workload that the reference cannot run.
    """
    room = find_room(workload.room)
    room.refuse(workload)
    compared = step_types or room.step_types
    expected = run_reference(room, workload, reference, compared)
    case = Case(workload.name, workload.name, "", workload, in_order=False)
    return judge(room, case, system, compared, expected)
