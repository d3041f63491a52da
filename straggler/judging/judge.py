"""Judge one case: run a system, compare its trace with the reference, check the claims on it.

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
"""

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from model.checking.claims import Outcome, Verdict, combine
from model.vocabulary import System, Trace, Workload
from model.vocabulary.trace import describe_bad_step, kind_of
from straggler.errors import SystemFailedError, UsageError, counted
from straggler.judging.levels import Scope
from straggler.judging.predictions import Prediction
from straggler.rooms import Case, Evidence, Figures, JudgedCase, ReferenceRun, Remark, Room

AGREEMENT = "equal to the reference"
NAMES = {"sim": "simulation", "model": "model", "both": "simulation"}
"""Name of the other side of the comparison, by value of ``--reference``."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Everything that is known about one judged case."""

    room: Room
    case: Case
    agreement: Verdict
    evidence: Evidence
    guard: Verdict
    figures: Figures
    remarks: tuple[Remark, ...]
    mismatches: int
    seconds: float
    """Time that the system took (s)."""
    digests: tuple[str, str]
    """Digests of the reference's trace and of the observed trace."""
    reference: str
    """``sim``, ``model`` or ``both``."""
    predicted: Prediction
    """Times predicted by the simulation."""
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
            **self.predicted._asdict(),
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
    """Return the sentences of all broken verdicts, each followed by its witness."""
    found: list[str] = []
    for verdict in verdicts:
        if verdict.outcome is Outcome.BROKEN:
            found += [f"{verdict.claim}: {verdict.sentence}", *verdict.witness]
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
        room.remarks(seen),
        mismatches,
        seconds,
        (wanted.digest(), observed.digest()),
        expected.reference,
        expected.predicted,
        expected.simulated,
        scope.level,
    )


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
    return f"the system differs from the {NAMES[expected.reference]}: "


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
    hint = f"; there is no {' or '.join(silent)} step at all (--kinds names those to compare)"
    hint = hint if silent else ""
    found = f"{counted(wrong, 'step')} {'is' if wrong == 1 else 'are'}"
    sentence = f"{differs}{found} missing, not expected or different{hint}"
    return Verdict(AGREEMENT, Outcome.BROKEN, sentence, difference.sentences), wrong
