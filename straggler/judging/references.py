"""References that a system on trial is compared with, and the workload that it receives.

Rules of this file:

* The simulation replays a workload through the stated cluster. The decisions of timing become part
  of the workload of the system, so the system has to observe the same as the simulation.
* With ``both``, simulation and model run the workload of the simulation. A disagreement between the
  two is our mistake and says nothing about the system.
"""

from collections.abc import Collection
from dataclasses import replace

from model.vocabulary import Trace, Workload
from straggler.errors import UsageError
from straggler.judging.judge import compare_traces
from straggler.rooms import ReferenceRun, Room

SIM, MODEL, BOTH = "sim", "model", "both"
REFERENCES = (SIM, MODEL, BOTH)
OURS = "simulation equal to the model"
DIFFERS = "the simulation (observed) differs from the model (expected), our mistake: "


def run_reference(
    room: Room, workload: Workload, reference: str, step_types: Collection[type]
) -> ReferenceRun:
    """Run the reference on a workload and return what a system should observe.

    Raise :class:`UsageError` for a workload that the reference cannot run.
    """
    if reference == MODEL:
        return ReferenceRun(reference, workload, run_model(room, workload))
    found = _replayed(room, workload, reference)
    if reference == SIM:
        return found
    trace = run_model(room, found.workload)
    verdict, _ = compare_traces(room, found.workload, trace, found.trace, step_types, DIFFERS)
    return found._replace(simulated=(replace(verdict, claim=OURS),))


def run_model(room: Room, workload: Workload) -> Trace:
    """Return the trace of the untimed model."""
    try:
        return room.reference()(workload)
    except OverflowError as error:
        raise UsageError(f"{workload.name}: a result leaves the range of float64") from error


def _replayed(room: Room, workload: Workload, reference: str) -> ReferenceRun:
    try:
        run = room.replay(workload)
    except OverflowError as error:
        raise UsageError(f"{workload.name}: a result leaves the range of float64") from error
    except ValueError as error:
        sentence = (
            f"{workload.name} cannot be replayed through the stated cluster: {error}"
            f" (--reference {MODEL} compares without it)"
        )
        raise UsageError(sentence) from error
    # Faults strike the system alone and change nothing that it should observe.
    given = run.workload.with_(faults=workload.faults) if workload.faults else run.workload
    # Workloads are usually equal: then the arrivals are kept in memory once.
    given = workload if given == workload else given
    predicted = room.predictor.predict(run)
    return ReferenceRun(reference, given, run.trace, predicted, course=run.course)
