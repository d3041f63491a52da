"""Levels of judgement: everything that a system records, or its answers alone.

Rules of this file:

* Systems of ours are judged by every step. A foreign system that gives the right answers need not
  wait, number revisions or cut batches as ours do.
* At level ``answers`` everything but answers is taken out of a trace before the trace is compared
  or judged, so that no verdict can depend on it.
"""

from collections.abc import Collection
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

from model.checking.claims import Judgement, Recording
from model.vocabulary import Trace, Workload, task_of
from model.vocabulary.settings import nearest
from model.vocabulary.trace import Step, field_types, kind_of
from straggler.errors import UsageError
from straggler.rooms import Room

ANSWERS, STEPS = "answers", "steps"
LEVELS = (ANSWERS, STEPS)
AVERAGE_TOLERANCE = 1e-12
"""Relative error of an average that counts as rounding."""
PLACES = 1024
"""Values with exact sums are multiples of ``1 / PLACES``."""


Kinds: TypeAlias = str | Collection[str]
"""Kinds of steps to compare: ``"match,rejected"``, or a list of them."""


class Scope(NamedTuple):
    """The part of a trace that is judged."""

    room: Room
    step_types: tuple[type, ...]
    """Step classes that are compared."""
    level: str = STEPS

    @classmethod
    def of(cls, room: Room, kinds: Kinds | None = None, level: str = STEPS) -> "Scope":
        """Return the scope with the step classes that ``kinds`` names, or with all of a level.

        Raise :class:`UsageError` for an unknown level or kind.
        """
        if level not in LEVELS:
            raise UsageError(f"level is {level!r}; it must be one of {', '.join(LEVELS)}")
        words = [word for word in room.step_types if level == STEPS or word in room.answers]
        by_kind = {kind_of(word): word for word in words}
        names = list(by_kind if kinds is None else kinds)
        if isinstance(kinds, str):
            names = kinds.split(",")
        for name in names:
            if name not in by_kind:
                at_level = f" at level {level}" if level == ANSWERS else ""
                known = f"only {', '.join(by_kind)}{nearest(name, by_kind)}"
                raise UsageError(f"there is no kind {name!r}{at_level}, {known}")
        return cls(room, tuple(by_kind[name] for name in names), level)

    @property
    def unjudged(self) -> tuple[str, ...]:
        """Fields that level ``answers`` ignores because they are no part of an answer."""
        if self.level == STEPS:
            return ()
        words = [word for word in self.room.answers if word in self.step_types]
        kept = {name for word in words for name in self.room.answers[word]}
        declared = dict.fromkeys(name for word in words for name in field_types(word))
        return tuple(name for name in declared if name not in kept)

    def reduce(self, trace: Trace, workload: Workload) -> Trace:
        """Return the trace, or at level ``answers`` its answers with all other fields blank."""
        if self.level == STEPS:
            return trace
        chosen: list[Any] = [word for word in self.room.answers if word in self.step_types]
        steps = [self._blank(word, step) for word in chosen for step in trace.of(word)]
        if self.room.name in ("slack", "watermark") and workload.config.get("keyed", True):
            steps = [_with_task(step, workload) for step in steps]
        if workload.config.get("aggregate") == "avg":
            steps = list(map(_round_average, steps))
        return Trace(trace.producer, steps)

    def _blank(self, word: Any, step: Step) -> Step:
        kept, values = self.room.answers[word], step._asdict()
        blanks = {
            name: values[name] if name in kept else declared.blank
            for name, declared in field_types(word).items()
        }
        blanked: Step = word(**blanks)
        return blanked

    def check(self, workload: Workload, observed: Trace) -> Judgement:
        """Check the claims on a reduced trace; a claim whose steps are missing is undetermined."""
        silent = {
            word
            for word in self.room.step_types
            if word not in self.step_types and not observed.of(word)
        }
        recording = Recording(frozenset(silent), self.level == ANSWERS)
        return self.room.check(workload, observed, recording=recording)


def _with_task(step: Any, workload: Workload) -> Any:
    """Return an answer of a keyed query with the task of its key, whatever task was recorded.

    The key determines the task, and a system in another language need not know our hash.
    """
    key = getattr(step, "key", None)
    if key is None:
        if not 0 <= step.seq < len(workload.arrivals):
            return step
        key = workload.arrivals[step.seq].key
    return step._replace(task=task_of(key, workload.config.get("tasks", 1)))


def _round_average(step: Any) -> Any:
    """Return the answer of a window with the nearest possible average, if that is near enough.

    Another system may round an average more than once. Values whose sums are exact have at most 10
    binary places, so an average is one of few quotients (docs/slack.md, section 3).
    """
    n = getattr(step, "n_rcv", getattr(step, "n", 0))
    value = getattr(step, "value", None)
    if value is None or n <= 0 or not isfinite(value * n * PLACES):
        return step
    meant = round(value * n * PLACES) / PLACES / n
    is_near = abs(meant - value) <= AVERAGE_TOLERANCE * max(abs(value), 1 / PLACES)
    return step._replace(value=meant) if is_near else step
