"""Planted bugs in a worker of scripts, which many orders of inputs reveal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeAlias

import pytest

from model.script import machine
from model.script.evaluation import Slices
from model.script.intake import Intake
from model.script.machine import NOTHING, Effect, Notice, Share, Worker, WorkerState, share_of
from model.script.placement import Placement
from model.script.silence import NO_FLOORS
from model.script.slices import Units
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.config import END_US, MILLISECOND_US
from model.vocabulary.script.tree import (
    Arithmetic,
    Expression,
    Name,
    Sensor,
    Statement,
    Union,
    Window,
    Workflow,
)
from model.vocabulary.settings import JsonObject
from tests.model.script.interleaving import Interleaving, anywhere

A, B = Sensor("a"), Sensor("b")
EXPRESSIONS: dict[str, Expression] = {
    "short": Window("sum", A, 4, 2),
    "long": Window("avg", A, 7, 3),
    "both": Window("count", Union((A, B, A)), 6, 2),
    "apart": Arithmetic("-", Name("short"), Name("both")),
    "twice": Window("max", Union((Name("apart"), Name("long"))), 4, 4),
    "now": Arithmetic("/", B, A),
}
CONFIG = ScriptConfig(
    (Workflow("w", tuple(Statement(*each) for each in EXPRESSIONS.items())),),
    (("a", 3_600_000), ("b", 1_800_000)),
    workers=3,
    lateness_us=3 * MILLISECOND_US,
    idle_after_us=14 * MILLISECOND_US,
)


def workload(random: Random) -> Workload:
    """Draw tuples with gaps; some are late, redelivered, simultaneous, or of another scale."""
    arrivals: list[Event] = []
    now_ms = 0
    for seq in range(60):
        now_ms += random.choice([0, 1, 1, 1, 12])
        stamp_us = max(0, now_ms - random.choice([0, 0, 1, 5])) * MILLISECOND_US
        value = random.choice([0.0, 1.0, 3.0, 0.1, 0.25])
        event = Event(seq, seq, random.choice("aab"), stamp_us, value, now_ms * MILLISECOND_US)
        if arrivals and random.random() < 0.2:
            event = random.choice(arrivals[-4:])._replace(seq=seq)
        arrivals.append(event)
    return Workload("script", tuple(arrivals), CONFIG.to_json(), flush=random.random() < 0.5)


def found(random: Random) -> bool:
    """Return whether some run differs from the meaning of all tuples."""
    for _ in range(60):
        seen = Interleaving(workload(random), anywhere(random), random, eventful=0.2)
        try:
            seen.run()
            if seen.differences():
                return True
        except AssertionError:
            return True
    return False


def test_nothing_is_found_where_nothing_is_planted(seed: int) -> None:
    assert not found(Random(seed))


# ------------------------------------------------------------------------------------ the bugs

Bug: TypeAlias = tuple[Any, str, Callable[..., Any]]
"""The owner of an attribute, its name, and its replacement."""


def _applied_twice(self: Worker, notice: Notice) -> Sequence[Effect]:
    if notice.point is not None:
        self._state.logs[notice.node].last_us = -1
    return _HEAR(self, notice)


def _without_notices(self: Worker, notice: Notice) -> Sequence[Effect]:
    return NOTHING if notice.point is None else _HEAR(self, notice)


def _at_the_first_result(self: Worker, notice: Notice) -> Sequence[Effect]:
    until_us = END_US if notice.until_us is None else notice.until_us
    return _HEAR(self, notice._replace(until_us=until_us))


def _known_by_one_part(self: Worker, number: int) -> int:
    logs = self._state.logs
    return max([logs[part].until_us for part in self.share.parts[number]], default=END_US)


def _read_by_one(self: Worker, computed: Sequence[int]) -> None:
    for number in computed:
        for stream in self.share.reads[number]:
            self._state.logs[stream].forget(self._taken_us(number))


def _closed_too_early(self: Slices, before_us: int) -> None:
    _FORGET_SLICES(self, before_us + 2 * MILLISECOND_US)


def _in_old_units(self: Slices, units: Units) -> list[int]:
    parts = self.parts
    whole = _TO_SCALE(self, units)
    self.parts = [part._replace(scale=self._scale) for part in parts]
    return whole


def _without_pending(self: Worker, saved: WorkerState) -> None:
    _RESTORE(self, saved)
    for log in self._state.logs.values():
        log.points.clear()


def _without_identities(self: Worker, saved: WorkerState) -> None:
    _RESTORE(self, saved)
    for clock in self._state.clocks.values():
        clock.ids.clear()


def _with_later(part: str) -> Callable[[Worker, WorkerState], None]:
    """Restore all but one part of the state, which stays as it was at the failure."""

    def restore(self: Worker, saved: WorkerState) -> None:
        kept = getattr(self._state, part)
        _RESTORE(self, saved)
        self._state = self._state._replace(**{part: kept})

    return restore


def _no_copy(self: Worker) -> WorkerState:
    """Save the state without a copy, so that it goes on changing."""
    return self._state


def _at_once(self: Intake) -> None:
    for clock in self.clocks.values():
        clock.ids.clear()


def _share(change: Callable[[Share], JsonObject]) -> Callable[..., Share]:
    def planted(placement: Placement, worker: int) -> Share:
        share = share_of(placement, worker)
        return replace(share, **change(share))

    return planted


def _only_ends(self: Worker) -> list[Effect]:
    """End the sensors one after the other, and forget the last one."""
    numbers = sorted(self.share.sensors.values())
    for number in numbers[:-1]:
        if number in self._state.logs:
            self._state.logs[number].until_us = END_US
    return self._follow(set(numbers[:-1]), self.share.own)


def _without_floor(self: Worker, event: Event, floor_us: int = 0) -> Sequence[Effect]:
    return _TAKE(self, event)


def _deaf_to_silence(self: Worker, floors_us: Mapping[str, int] = NO_FLOORS) -> Sequence[Effect]:
    return _END_BATCH(self)


def _nothing_follows(self: Worker, floors_us: Mapping[str, int] = NO_FLOORS) -> Sequence[Effect]:
    _END_BATCH(self, floors_us)
    return NOTHING


_TAKE, _END_BATCH = Worker.take, Worker.end_batch
_HEAR, _RESTORE = Worker.hear, Worker.restore
_FORGET_SLICES, _TO_SCALE = Slices.forget, Slices._to_scale

BUGS: Mapping[str, Bug] = {
    "a message is applied twice": (Worker, "hear", _applied_twice),
    "a notice is ignored": (Worker, "hear", _without_notices),
    "with the first of several results all is known": (Worker, "hear", _at_the_first_result),
    "a union is known when one of its parts is": (Worker, "_until_us", _known_by_one_part),
    "what one reader has taken is forgotten": (Worker, "_forget", _read_by_one),
    "a slice is closed too early": (Slices, "forget", _closed_too_early),
    "old sums stay in old units": (Slices, "_to_scale", _in_old_units),
    "a restored worker forgets pending tuples": (Worker, "restore", _without_pending),
    "a restored worker forgets identities": (Worker, "restore", _without_identities),
    "a restored worker keeps its clocks": (Worker, "restore", _with_later("clocks")),
    "a restored worker keeps its slices": (Worker, "restore", _with_later("slices")),
    "a restored worker keeps its latest values": (Worker, "restore", _with_later("latest")),
    "a restored worker keeps what it knew": (Worker, "restore", _with_later("known_us")),
    "a checkpoint changes with the worker": (Worker, "saved", _no_copy),
    "identities are forgotten at the end of a batch": (Intake, "forget", _at_once),
    "all workers report a rejection": (
        machine,
        "share_of",
        _share(lambda share: {"says": frozenset(share.sensors)}),
    ),
    "a worker hears of a sensor too late": (
        machine,
        "share_of",
        _share(
            lambda share: {
                "steps_us": {
                    stream: frozenset([max(steps)]) for stream, steps in share.steps_us.items()
                }
            }
        ),
    ),
    "a part of a union counts once": (
        machine,
        "share_of",
        _share(
            lambda share: {
                "parts": {number: tuple(set(parts)) for number, parts in share.parts.items()}
            }
        ),
    ),
    "the end of one sensor is forgotten": (Worker, "flush", _only_ends),
    "an arrival comes without its floor": (Worker, "take", _without_floor),
    "a worker hears of no silence": (Worker, "end_batch", _deaf_to_silence),
    "nothing follows from a silence": (Worker, "end_batch", _nothing_follows),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(*BUGS[name])
    assert found(Random(seed))
