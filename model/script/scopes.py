"""All scripts of a few nodes with every small stream.

Rules of this file:

* A state is a script and the tuples that have arrived for it. Two orders of arrival are two states,
  because the order decides what is late.
* Every script runs beside another one, which gives the same name to something else.
* Micro-batches, restarts and kills are not states: the admitted tuples determine everything.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from math import nan
from typing import NamedTuple

from model.checking.claims import Judgement
from model.checking.explorer import Exploration, Machine, StateClaim, claims_on_workloads
from model.checking.explorer import explore as search
from model.script.claims import CLAIMS, HOSTS, LOAD, judge
from model.script.run import run
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.config import MILLISECOND_US
from model.vocabulary.script.tree import (
    Across,
    Arithmetic,
    Expression,
    Sensor,
    Statement,
    Union,
    Window,
    Workflow,
)


class Letter(NamedTuple):
    """A tuple that may arrive."""

    sensor: str
    at_ms: int
    is_finite: bool = True


LETTERS = (
    Letter("a", 0),
    Letter("a", 1),
    Letter("a", 2),
    Letter("b", 0),
    Letter("b", 1),
    Letter("b", 1, is_finite=False),
)
DISORDERED = (Letter("a", 0), Letter("a", 3), Letter("a", 4), Letter("b", 0))
"""Letters of streams in which a cluster fills, its watermark moves, and a tuple is late."""
SILENT = (Letter("a", 0), Letter("a", 3), Letter("b", 0), Letter("b", 1), Letter("c", 3))
"""Letters of streams in which a sensor falls silent while the other one moves on, and returns."""
VALUES = (1.0, 0.0, 4.0, 8.0)
"""Values by position: sums identify the tuples that they count, and a division by zero occurs."""


class Beginning(NamedTuple):
    """A script by its number, and the tuples that have arrived."""

    script: int
    arrived: tuple[Letter, ...] = ()


# --------------------------------------------------------------------------------------- scripts

A, B = Sensor("a"), Sensor("b")


def _windows(source: Expression) -> tuple[Window, ...]:
    """Return a window whose slide does not divide it, one that overlaps, and one with gaps."""
    return Window("avg", source, 3, 2), Window("sum", source, 2, 1), Window("max", source, 2, 4)


def scripts() -> Iterator[Expression]:
    """Yield every script of one or two computations in this scope."""
    signs: list[Expression] = [
        Arithmetic("+", A, B),
        Arithmetic("-", A, B),
        Arithmetic("-", B, A),
        Arithmetic("/", A, B),
        Across("max", (A, B)),
    ]
    yield from (*_windows(A), *_windows(B), *signs)
    sources: tuple[Expression, ...] = (Union((A, A)), Union((A, B)), *signs, *_windows(A))
    for source in sources:
        yield from _windows(source)
    for left, right in zip(_windows(A), _windows(B), strict=True):
        yield from (Arithmetic("-", left, A), Arithmetic("/", left, right))
    for left, right in permutations(_windows(A), 2):
        yield Arithmetic("-", left, right)


SCRIPTS = tuple(scripts())
FEW = (Arithmetic("/", A, B), Window("sum", A, 3, 2), Window("sum", B, 2, 1))
BESIDE = Workflow("v", (Statement("x", Window("sum", B, 2, 1)),))


@dataclass(frozen=True, slots=True)
class Scope:
    """Every script, on two workers, with every stream of a few tuples."""

    tuples: int
    """Largest number of tuples of a stream."""
    scripts: tuple[Expression, ...] = SCRIPTS
    letters: tuple[Letter, ...] = LETTERS
    watermark: str = "fixed"
    lateness_ms: int = 1
    idle_after_ms: int | None = None
    """Silence after which a sensor is idle; tuples arrive two of them apart."""

    def workload(self, beginning: Beginning) -> Workload:
        """Return a workload of the tuples, for the script and the one beside it."""
        flow = Workflow("w", (Statement("x", self.scripts[beginning.script]),))
        config = ScriptConfig(
            (flow, BESIDE),
            (("a", 1), ("b", 1)),
            workers=2,
            lateness_us=self.lateness_ms * MILLISECOND_US,
            cap_percent=200,
            watermark=self.watermark,
            idle_after_us=self.idle_after_ms and self.idle_after_ms * MILLISECOND_US,
        )
        arrivals = tuple(
            Event(
                seq,
                seq,
                letter.sensor,
                letter.at_ms * MILLISECOND_US,
                VALUES[seq] if letter.is_finite else nan,
                0 if self.idle_after_ms is None else 2 * seq * MILLISECOND_US,
            )
            for seq, letter in enumerate(beginning.arrived)
        )
        return Workload("script", arrivals, config.to_json())

    def machine(self) -> Machine[Beginning, Letter]:
        """Return the transition system: a tuple arrives."""
        start = [Beginning(number) for number in range(len(self.scripts))]
        return Machine(start, self._actions, _action, self._describe)

    def _actions(self, beginning: Beginning) -> Iterator[tuple[Letter, Beginning]]:
        if len(beginning.arrived) < self.tuples:
            for letter in self.letters:
                yield letter, beginning._replace(arrived=(*beginning.arrived, letter))

    def _describe(self, beginning: Beginning) -> str:
        script = f"x = {source_text(self.scripts[beginning.script])}"
        if not beginning.arrived:
            return f"the script is {script}; nothing has arrived"
        return f"arrived for {script} is tuple {len(beginning.arrived)}"


def _action(letter: Letter) -> str:
    value = "" if letter.is_finite else ", its value not finite"
    return f"A tuple of {letter.sensor} arrives, stamped {letter.at_ms} ms{value}"


def source_text(expression: Expression) -> str:
    """Return an expression of a scope in the language of scripts."""
    match expression:
        case Sensor(sensor):
            return f'"{sensor}"'
        case Union(parts):
            return f"union({', '.join(map(source_text, parts))})"
        case Across(op, parts):
            return f"{op}({', '.join(map(source_text, parts))})"
        case Window(op, source, length_ms, slide_ms):
            return f"{op}({source_text(source)}, {length_ms}, {slide_ms})"
        case Arithmetic(op, left, right):
            return f"{source_text(left)} {op} {source_text(right)}"
    raise ValueError(expression)


SCOPES: Mapping[str, Scope] = {
    "small": Scope(2),
    "three": Scope(3),
    "disorder": Scope(4, FEW, DISORDERED, "disorder", lateness_ms=3),
    "silent": Scope(4, FEW, SILENT, lateness_ms=1, idle_after_ms=1),
}
EVERYDAY = ("small",)


# --------------------------------------------------------------------------------------- claims


def claims_of(scope: Scope) -> list[StateClaim[Beginning]]:
    """Return the promises, each with the case without which it would be untested."""

    def judge_beginning(beginning: Beginning) -> Judgement:
        workload = scope.workload(beginning)
        return judge(workload, run(workload))

    # Nothing is split with a cap of twice an even share.
    guards = {**CLAIMS.guards, HOSTS: CLAIMS.guards[LOAD]}
    return claims_on_workloads(judge_beginning, guards)


def explore(scope: str) -> Exploration[Beginning, Letter]:
    """Search a scope. Raise ``KeyError`` for an unknown name."""
    chosen = SCOPES[scope]
    return search(chosen.machine(), claims_of(chosen))
