"""A system on trial: shrink what it breaks in reasonable time, store it and describe it."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from model.checking.shrink import smallest
from model.vocabulary import Event, System, Trace, Workload
from model.vocabulary.durations import write_duration
from model.vocabulary.settings import JsonObject, is_int
from model.vocabulary.trace import kind_of
from straggler.errors import counted
from straggler.judging.counterexamples import Counterexample
from straggler.judging.judge import (
    MODEL,
    SILENT,
    broken_sentences,
    compare_traces,
    describe_difference,
    run_reference,
    run_system,
)
from straggler.judging.levels import Scope
from straggler.judging.processes import ProcessSystem
from straggler.judging.systems import SPARK

SECONDS_MAX = 60.0
SHOWN_SENTENCES = 16
SHOWN_ARRIVALS = 20
_HINT = re.compile(re.escape(SILENT).replace(r"\{\}", ".*"))
NOT_AGAIN = "A second run alone breaks nothing: the failure depends on more than the workload."

Tried = Callable[[Workload], tuple[str, ...]]
"""Function that returns a sentence for each thing that a workload breaks."""
Promise = Callable[[Workload, Trace], Sequence[str]]
"""Function that lists how a trace breaks a promise that is not among the claims of its room."""


class _EnoughError(Exception):
    """The time limit for shrinking has passed."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A system on trial."""

    scope: Scope
    system: System
    name: str
    """``spark``, or MODULE:FACTORY."""
    reference: str = MODEL
    """Reference of a workload: ``model`` or ``both``."""
    promise: Promise = lambda *_: ()
    accepts: Callable[[Workload], bool] = lambda _: True
    """Return whether the system can run a workload: no other is tried to make one smaller."""
    trouble: tuple[JsonObject, ...] = ()
    """Trouble that the system meets, stored with what it breaks."""

    def broken(self, workload: Workload) -> tuple[str, ...]:
        """Run a workload on system and reference; return sentences on what is broken."""
        return self._beside_reference(self.system, workload, self.scope.step_types)

    def report(self, workload: Workload, folder: Path) -> list[str]:
        """Shrink a workload that broke something, store it, and return its description."""
        small, broken = self._smallest(workload)
        broken = broken or (NOT_AGAIN,)
        kinds = tuple(kind_of(word) for word in self.scope.step_types)
        found = Counterexample(
            self.name, small, kinds, broken, self.reference, self.scope.level, self.trouble
        )
        path = found.store(folder)
        return [
            *broken[:SHOWN_SENTENCES],
            *describe(small, self.scope.room.settings(small)),
            *describe_plainer(workload, small),
            f"Stored in {path}; run it again with: straggler replay {path}"
            + ("" if self.name == SPARK else " --trust"),
        ]

    def _smallest(self, workload: Workload) -> tuple[Workload, tuple[str, ...]]:
        """Return the smallest workload found, and what it breaks."""
        # Spark takes seconds a run; its state operator alone shows most failures in a millisecond.
        room, compared = self.scope.room, self.scope.step_types
        in_process = tuple(word for word in room.in_process_step_types if word in compared)

        def fails_in_process(candidate: Workload) -> tuple[str, ...]:
            return self._beside_reference(room.in_process(), candidate, in_process)

        if self.name == SPARK and (first := fails_in_process(workload)):
            small = shrink(workload, fails_in_process, room.simpler)
            if broken := self.broken(small):
                return small, with_hint_of(first, broken)
        before = self._timeouts
        first = found = self.broken(workload)
        if not found or self._timeouts > before:
            return workload, found

        def ends() -> bool:
            return self._timeouts > before

        def fails(candidate: Workload) -> tuple[str, ...]:
            nonlocal found
            broken = self.broken(candidate) if self.accepts(candidate) else ()
            found = found if ends() else broken or found
            return broken

        small = shrink(workload, fails, room.simpler, ends=ends)
        return small, with_hint_of(first, found if ends() else self.broken(small))

    @property
    def _timeouts(self) -> int:
        return self.system.timeouts if isinstance(self.system, ProcessSystem) else 0

    def _beside_reference(
        self, system: System, workload: Workload, step_types: tuple[type, ...]
    ) -> tuple[str, ...]:
        scope = self.scope
        expected = run_reference(scope.room, workload, self.reference, scope.step_types)
        workload = expected.workload
        observed, failure = run_system(scope.room, system, workload)
        if failure is not None:
            return broken_sentences([failure, *expected.simulated])
        wanted, seen = (scope.reduce(each, workload) for each in (expected.trace, observed))
        differs = describe_difference(expected)
        agreement, _ = compare_traces(
            scope.room, workload, wanted, seen, step_types, differs, scope.unjudged
        )
        # The part of Spark that runs in process records too little for other promises.
        own = tuple(self.promise(workload, observed)) if system is self.system else ()
        verdicts = (*scope.check(workload, seen).verdicts, agreement, *expected.simulated)
        return own + broken_sentences(verdicts)


def with_hint_of(first: Sequence[str], broken: Sequence[str]) -> tuple[str, ...]:
    """Return sentences with the hint of ``first`` on kinds that are not recorded at all.

    A small workload may need one step of a kind, which is missing, though others are recorded.
    """
    hint = next((found[0] for found in map(_HINT.search, first) if found), "")
    return tuple(_HINT.sub(lambda _: hint, sentence) for sentence in broken)


def shrink(
    workload: Workload,
    tried: Tried,
    simpler: Callable[[Workload], Iterator[Workload]],
    ends: Callable[[], bool] = lambda: False,
) -> Workload:
    """Return the smallest workload found in a while that still breaks something.

    ``simpler`` yields workloads with a simpler query; they are tried when arrivals are few. The
    search ends if ``ends`` is true of the last one: a command that did not answer in time may
    never do so.
    """
    ends_s = time.monotonic() + SECONDS_MAX
    best = workload

    def fails(candidate: Workload) -> bool:
        nonlocal best
        if time.monotonic() > ends_s:
            raise _EnoughError
        broken = bool(tried(candidate))
        if ends():
            raise _EnoughError
        if broken:
            best = candidate
        return broken

    try:
        small = smallest(workload, fails)
        while (less := next(filter(fails, simpler(small)), None)) is not None:
            small = less
        return smallest(small, fails)
    except _EnoughError:
        return best


def describe(workload: Workload, settings: Mapping[str, object]) -> list[str]:
    """Describe a workload, with one sentence for each arrival if there are few."""
    arrivals = counted(len(workload.arrivals), "arrival")
    batches = counted(len(list(workload.batches())), "batch")
    words = (in_words(name, value) for name, value in settings.items() if value)
    given = ", ".join(map("=".join, words))
    head = f"It takes {arrivals} in {batches}, with {given}"
    if len(workload.arrivals) > SHOWN_ARRIVALS:
        return [f"{head}."]
    return [
        f"{head}:",
        *(
            f"  {event.seq}. tuple {event.stream}{event.source_id}, key {event.key!r}, event"
            f" time {event.event_time_us} us, value {event.value!r}{_columns(workload, event)}"
            f" (batch {batch})"
            for batch, events in enumerate(workload.batches())
            for event in events
        ),
    ]


def in_words(name: str, value: object) -> tuple[str, str]:
    """Return the name and the value of a setting as people write them: times have a unit."""
    if name.endswith("_us") and is_int(value):
        return name.removesuffix("_us"), write_duration(value)
    return name, f"{value}"


def describe_plainer(workload: Workload, small: Workload) -> list[str]:
    """Return a sentence if a smaller workload has other keys or values than the whole one."""
    changed = []
    for name in ("key", "value"):
        found, known = (
            {(each.stream, each.source_id, repr(getattr(each, name))) for each in every.arrivals}
            for every in (small, workload)
        )
        if found - known:
            changed.append(f"{name}s")
    if not changed:
        return []
    words = " and ".join(changed).capitalize()
    return [f"{words} are made as plain as the failure allows; the input has others."]


def _columns(workload: Workload, event: Event) -> str:
    """Return the names and values of the further columns of an arrival."""
    columns = workload.config.get(f"{event.stream.lower()}_columns", ())
    return "".join(
        f", {name} {value!r}" for (name, _), value in zip(columns, event.more, strict=False)
    )
