"""Judge one case: run reference and system, compare their traces, check the claims on them.

Rules of this file:

1. A system that raises has broken its promise; the exception is the witness.
2. Claims are checked on the observed trace without the reference, and traces are compared without
   claims: neither can hide what the other finds.
3. A case without late tuples is undetermined, and so is a case in which no step was compared. A
   claim that a case does not put to the test, or that needs steps that a system does not record,
   changes nothing.
4. Interesting cases such as late pairs or matches are counted in the trace of the reference: a
   system cannot talk itself into having been tested. A system that records its protocol is judged
   by claims on the recording.
5. The simulation replays a workload through the stated cluster. The decisions of timing become part
   of the workload of the system, so the system has to observe the same as the simulation.
6. With ``both``, simulation and model run the workload of the simulation. A disagreement between
   the two is our mistake and says nothing about the system.
"""

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from model.checking import claims
from model.checking.accounts import EVERY_ROW, Place
from model.checking.claims import Outcome, Verdict, combine
from model.vocabulary import System, Trace, Workload
from model.vocabulary.trace import describe_bad_step, kind_of
from straggler.errors import SystemFailedError, UsageError, counted, refuse_unknown
from straggler.judging.levels import ANSWERS, Kinds, Scope
from straggler.rooms import (
    Case,
    Figures,
    JudgedCase,
    ReferenceRun,
    Remark,
    Room,
    find_room,
)

AGREEMENT = "equal to the reference"
MODEL, BOTH = "model", "both"
REFERENCES = {MODEL: "model", BOTH: "simulation"}
"""Name of the other side of the comparison, by value of ``--reference``."""
OURS = "simulation equal to the model"
SILENT = "; there is no {} step at all (--kinds names those to compare)"
"""Hint on kinds of steps that a system does not record at all."""
DIFFERS = "the simulation (observed) differs from the model (expected), our mistake: "


@dataclass(frozen=True, slots=True)
class Judgement:
    """Everything that is known about one judged case."""

    room: Room
    case: Case
    agreement: Verdict
    evidence: claims.Judgement
    guard: Verdict
    figures: Figures
    remarks: tuple[Remark, ...]
    mismatches: int
    seconds: float
    """Time that the system took (s)."""
    digests: tuple[str, str]
    """Digests of the reference's trace and of the observed trace."""
    reference: str
    """``model`` or ``both``."""
    simulated: tuple[Verdict, ...]
    """Verdict on the agreement of simulation and model, if both ran."""
    level: str
    """``answers`` or ``steps``."""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Verdicts on all claims, on the agreement of all sides, and on the guard."""
        return (*self.evidence.verdicts, self.agreement, *self.simulated, self.guard)

    @property
    def outcome(self) -> Outcome:
        """Worst outcome of all verdicts; a claim without a test counts for nothing."""
        claims = self.evidence.verdicts
        broken = (verdict for verdict in claims if verdict.outcome is Outcome.BROKEN)
        return combine([self.agreement, self.guard, *self.simulated, *broken])

    @property
    def broken(self) -> tuple[str, ...]:
        """Sentences on everything that is broken."""
        return broken_sentences((*self.evidence.verdicts, self.agreement, *self.simulated))

    @property
    def is_ours(self) -> bool:
        """True if only the simulation is wrong, and the system is not to blame."""
        verdicts = (*self.evidence.verdicts, self.agreement, self.guard)
        is_right = all(verdict.outcome is not Outcome.BROKEN for verdict in verdicts)
        return is_right and self.outcome is Outcome.BROKEN

    def to_json(self) -> dict[str, object]:
        """Return the judgement as plain data."""
        expected, observed = self.digests
        return {
            "room": self.room.name,
            "input": self.case.name,
            "verdict": str(self.outcome),
            **self.figures,
            "mismatches": self.mismatches,
            "seconds": round(self.seconds, 3),
            "reference": self.reference,
            "level": self.level,
            "label": self.case.input,
            "query": self.case.query,
            "config": dict(self.case.workload.config),
            "seed": self.case.workload.seed,
            "digest_expected": expected,
            "digest_observed": observed,
            "guards": dict(self.evidence.guards),
            "remarks": [
                {"name": remark.name, "sentence": remark.sentence, **remark.data}
                for remark in self.remarks
            ],
            "claims": [
                {
                    "claim": verdict.claim,
                    "outcome": str(verdict.outcome),
                    "sentence": verdict.sentence,
                    "witness": list(verdict.witness),
                }
                for verdict in self.verdicts
            ],
        }


def broken_sentences(verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    """Return the sentences of all broken verdicts, each followed by the rest of its witness."""
    found: list[str] = []
    for verdict in verdicts:
        if verdict.outcome is Outcome.BROKEN:
            found += [f"{verdict.claim}: {verdict.sentence}", *verdict.more]
    return tuple(found)


def judge(scope: Scope, case: Case, system: System, expected: ReferenceRun) -> Judgement:
    """Run a case through a system and judge it, within a scope, against the expected trace."""
    room, workload, step_types = scope.room, expected.workload, scope.step_types
    started_s = time.perf_counter()
    recorded, failure = run_system(room, system, workload)
    seconds = time.perf_counter() - started_s
    wanted = scope.reduce(expected.trace, workload)
    observed = scope.reduce(recorded, workload)
    differs = describe_difference(expected)
    agreement, mismatches = compare_traces(
        room, workload, wanted, observed, step_types, differs, scope.unjudged
    )
    evidence = scope.check(workload, observed)
    given = case._replace(workload=workload)
    seen = JudgedCase(given, expected.trace, observed, evidence, step_types)
    figures = room.figures(seen)
    return Judgement(
        room,
        case,
        failure or agreement,
        evidence,
        room.guard(given, figures),
        figures,
        _accounts(seen),
        mismatches,
        seconds,
        (wanted.digest(), observed.digest()),
        expected.reference,
        expected.simulated,
        scope.level,
    )


def judge_workload(
    workload: Workload,
    system: System,
    *,
    kinds: Kinds | None = None,
    level: str = ANSWERS,
    reference: str = BOTH,
) -> Judgement:
    """Run a workload on a system of yours and on the reference, and return the verdicts.

    Raise :class:`straggler.errors.UsageError` for a workload that the reference cannot run, and for
    kinds that the level does not compare.

    Args:
        workload: arrivals in order, a configuration and a seed, such as ``simulate(...).workload``.
        system: function from a workload to a :class:`Trace` (docs/your-system.md).
        kinds: kinds of steps that are compared, such as ``["match"]``; None compares all of the
            level.
        level: ``"answers"``, or ``"steps"`` for decisions as well.
        reference: ``"model"``, or ``"both"``: the simulation, with which the model has to agree.

    Examples:
        >>> run = simulate("slack", seed=1, messages=500)
        >>> judgement = judge_workload(run.workload, lambda workload: run.trace)
        >>> judgement.mismatches
        0
    """
    room = find_room(workload.room)
    room.refuse(workload)
    refuse_unknown("reference", reference, REFERENCES)
    scope = Scope.of(room, kinds, level)
    expected = run_reference(room, workload, reference, scope.step_types)
    case = Case(workload.name, workload.name, "", workload)
    return judge(scope, case, system, expected)


def _accounts(seen: JudgedCase) -> tuple[Remark, ...]:
    """Return how many rows are accounted for, and how many are in each place, if that is known."""
    judged = {verdict.claim: verdict.outcome for verdict in seen.evidence.verdicts}
    if judged.get(EVERY_ROW, Outcome.UNDETERMINED) is Outcome.UNDETERMINED:
        return ()
    guards, rows = seen.evidence.guards, len(seen.case.workload.arrivals)
    places = {str(place): guards[place.case] for place in Place if guards.get(place.case)}
    accounted = sum(places.values())
    shown = ", ".join(f"{count:,} {place}" for place, count in places.items())
    sentence = f"{accounted:,} of {rows:,}" + (f" ({shown})" if shown else "")
    return (Remark("accounted for", sentence, {"rows": rows, "places": places}),)


# --------------------------------------------------------------------------------- the two sides


def run_reference(
    room: Room, workload: Workload, reference: str, step_types: Collection[type]
) -> ReferenceRun:
    """Run the reference on a workload and return what a system should observe.

    Raise :class:`UsageError` for a workload that the reference cannot run.
    """
    if reference == MODEL:
        return ReferenceRun(reference, workload, run_model(room, workload))
    found = _replayed(room, workload)
    trace = run_model(room, found.workload)
    verdict, _ = compare_traces(room, found.workload, trace, found.trace, step_types, DIFFERS)
    return found._replace(simulated=(replace(verdict, claim=OURS),))


def run_model(room: Room, workload: Workload) -> Trace:
    """Return the trace of the untimed model."""
    try:
        return room.reference()(workload)
    except OverflowError as error:
        raise UsageError(f"{workload.name}: a result leaves the range of float64") from error


def _replayed(room: Room, workload: Workload) -> ReferenceRun:
    try:
        run = room.timed.replay(workload)
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
    return ReferenceRun(BOTH, given, run.trace)


def run_system(room: Room, system: System, workload: Workload) -> tuple[Trace, Verdict | None]:
    """Return the trace of a system, with a verdict on its failure if it fails.

    A system fails if it raises anything or records anything but steps of the room: an answer of
    NaN, infinity or null is none. The good steps are judged all the same.
    :class:`UsageError` passes, because then the system was given no chance.
    """
    try:
        observed = system(workload)
        if not isinstance(observed, Trace):
            raise TypeError(f"it returned {type(observed).__name__}; expected a Trace")
        found = [(step, describe_bad_step(step, room.words)) for step in observed.steps()]
        bad = next((sentence for _, sentence in found if sentence), "")
        if not bad:
            return observed, None
        good = [step for step, sentence in found if not sentence]
        return Trace(observed.producer, good), Verdict(AGREEMENT, Outcome.BROKEN, bad)
    except UsageError:
        raise
    except SystemFailedError as error:
        return _failed(f"the system {error}")
    except (Exception, SystemExit) as error:  # every error counts as a failure of the system
        if _was_interrupted(error):
            raise KeyboardInterrupt from error
        text = " ".join(str(error).split()) or "no message"
        return _failed(f"the system raised {type(error).__name__}: {text[:300]}")


def _failed(sentence: str) -> tuple[Trace, Verdict]:
    return Trace("nothing", ()), Verdict(AGREEMENT, Outcome.BROKEN, sentence)


def _was_interrupted(error: BaseException) -> bool:
    """Return whether the error arose while an earlier Ctrl-C was handled."""
    earlier: BaseException | None = error
    while earlier is not None and not isinstance(earlier, KeyboardInterrupt):
        earlier = earlier.__cause__ or earlier.__context__
    return earlier is not None


def describe_difference(expected: ReferenceRun) -> str:
    """Return the start of a sentence on a difference: which two sides differ."""
    return f"the system differs from the {REFERENCES[expected.reference]}: "


def compare_traces(
    room: Room,
    workload: Workload,
    expected: Trace,
    observed: Trace,
    step_types: Collection[type],
    differs: str = "",
    ignore: Collection[str] = (),
) -> tuple[Verdict, int]:
    """Return whether two traces agree in some step classes, and the number of different steps.

    ``differs`` is the start of the sentence on traces that disagree. Fields in ``ignore`` are
    neither compared nor shown.
    """
    difference = room.compare(workload, expected, observed, step_types, ignore)
    wrong = difference.mismatches
    if not wrong and not difference.compared:
        names = ", ".join(kind_of(word) for word in step_types)
        sentence = f"neither the system nor the reference recorded a step of kind {names}"
        return Verdict(AGREEMENT, Outcome.UNDETERMINED, sentence), 0
    if not wrong:
        sentence = f"all {difference.compared:,} steps are the same"
        return Verdict(AGREEMENT, Outcome.HOLDS, sentence), 0
    silent = [kind_of(word) for word in step_types if expected.of(word) and not observed.of(word)]
    hint = SILENT.format(" or ".join(silent)) if silent else ""
    found = f"{counted(wrong, 'step')} {'is' if wrong == 1 else 'are'}"
    sentence = f"{differs}{found} missing, not expected or different{hint}"
    return Verdict(AGREEMENT, Outcome.BROKEN, sentence, difference.sentences), wrong
