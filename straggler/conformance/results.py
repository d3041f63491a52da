"""Results of an engine, and the file beside its adapter that stores them."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from model.checking.claims import Outcome
from straggler.conformance.engines import FILE, Engine, Finding
from straggler.errors import UsageError
from straggler.inputs.text_files import write_output

REPRODUCED, CLOSED, FAILED = "reproduced", "closed", "failed"


class Case(NamedTuple):
    """The outcome of a case on all its workloads."""

    promise: str
    how: str
    outcome: Outcome
    sentence: str
    counts: Mapping[str, int]
    """Number of interesting cases in all workloads, by name."""
    broken: int
    """Number of workloads on which the promise broke."""
    counterexample: tuple[str, ...]
    """Sentences on the smallest workload that breaks the promise."""
    workload: Any
    """The smallest workload as plain data, or ``None``."""
    failure: str = ""
    """Sentence on how the adapter failed; empty if it answered one broken workload or more."""


class Trail(NamedTuple):
    """A finding that was tried on the engine alone."""

    finding: Finding
    outcome: str
    """``reproduced``, ``closed`` or ``failed``."""
    output: str


class Results(NamedTuple):
    """Everything that was judged of an engine."""

    engine: str
    version: str
    seed: int
    cases: tuple[Case, ...]
    trails: tuple[Trail, ...]

    def of(self, promise: str) -> list[Case]:
        """Return the cases of a promise."""
        return [case for case in self.cases if case.promise == promise]

    def to_json(self) -> dict[str, Any]:
        """Return plain data; :meth:`from_json` reads it back."""
        cases = [{**each._asdict(), "outcome": str(each.outcome)} for each in self.cases]
        trails = [
            {**each.finding._asdict(), "outcome": each.outcome, "output": each.output}
            for each in self.trails
        ]
        return {**self._asdict(), "cases": cases, "trails": trails}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Results":
        """Read plain data; raise ``KeyError``, ``TypeError`` or ``ValueError`` for other data."""
        cases = tuple(
            Case(
                **{
                    **each,
                    "outcome": Outcome(each["outcome"]),
                    "counterexample": tuple(each["counterexample"]),
                }
            )
            for each in data["cases"]
        )
        trails = tuple(_trail(**each) for each in data["trails"])
        return cls(data["engine"], data["version"], data["seed"], cases, trails)


def _trail(outcome: str, output: str, **finding: str) -> Trail:
    return Trail(Finding(**finding), outcome, output)


def read_results(engine: Engine) -> Results | None:
    """Read what was judged last; raise :class:`UsageError` if the file is damaged or outdated."""
    if not engine.results.exists():
        return None
    try:
        found = Results.from_json(json.loads(engine.results.read_text(encoding="utf-8")))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{engine.results} cannot be read: {error}") from error
    asked = {(each.promise, each.how) for each in engine.cases}
    if (
        found.version != engine.version
        or {(each.promise, each.how) for each in found.cases} != asked
    ):
        raise UsageError(
            f"{engine.results} is about version {found.version} or other cases than those of"
            f" {engine.version} in {FILE}; judge {engine.name} again"
        )
    return found


def write_results(engine: Engine, results: Results) -> None:
    """Store results beside the engine; the file is complete or stays as it was."""
    text = json.dumps(results.to_json(), indent=1, ensure_ascii=False)
    write_output(engine.results, text + "\n")
