"""Planted bugs in a timed run of sensor scripts, which its trace or its messages reveal."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from model.checking.claims import Outcome
from model.script import make_system
from model.script.claims import judge
from model.script.rules import RULES, Rules
from model.script.variants import VARIANTS
from model.vocabulary import Fault, ScriptConfig
from model.vocabulary.script.config import Rejected, Result, Undefined
from model.vocabulary.script.tree import Arithmetic, Name, Sensor, Statement, Window, Workflow
from sim.kernel.plan import Plan, replay
from sim.kernel.source import Recording, Row
from sim.kernel.station import Offer
from sim.script import ScriptRun, simulate
from sim.script.cluster import ScriptCluster
from sim.script.host import Host, Item, Mark, ScriptTuning, WorkerRecord
from sim.script.machine import Finding, Message, compile_scripts
from sim.script.settings import ReadyRun, prepare

SETTINGS = {"sensors": "8", "rates_hz": "5", "seconds": "12", "workers": "3"}
FAULTS = {
    "faults": "fail worker-1 5500000 300000; fail worker-2 8700000 300000; "
    "congest worker-2>worker-0 9000000 20000000 0",
    "placement": "by-sensor",
    "result_us": "100000",
}


def asked(**settings: str) -> ReadyRun:
    return prepare({**SETTINGS, **FAULTS, **settings}, 3)


def is_right(run: ScriptRun) -> bool:
    """Return whether everything recorded is what the model records, whatever the placement."""
    expected = make_system()(run.workload)
    return all(run.trace.of(word) == expected.of(word) for word in (Result, Undefined, Rejected))


def test_nothing_is_found_where_nothing_is_planted() -> None:
    run = simulate(*asked())
    assert is_right(run)
    assert run.summary["served_again"]
    assert run.summary["results_sent"]


@pytest.mark.parametrize("name", VARIANTS)
def test_rules_with_a_mistake_are_found(name: str) -> None:
    def broken(rules: Rules) -> list[str]:
        case = VARIANTS[name].example
        plan = replay(case.arrivals, case.name, case.cuts, flush=case.flush)
        config = ScriptConfig.from_json(case.config)
        seen = simulate(plan, config, 0, machine=partial(compile_scripts, rules=rules))
        verdicts = judge(seen.workload, seen.trace).verdicts
        return [each.claim for each in verdicts if each.outcome is Outcome.BROKEN]

    assert not broken(RULES)
    assert VARIANTS[name].promise in broken(VARIANTS[name].rules)


# ------------------------------------------------------------------------------------ the bugs


def _to_nobody(self: Host, finding: Finding) -> None:
    """Keep results where they are."""
    self.record.add(finding, 0.0)


def _without_notices(self: Host, finding: Finding) -> None:
    messages = [message for message in finding.messages if message.stamps_us]
    _PUBLISH(self, finding._replace(messages=messages))


def _at_the_first_mark(self: Host, mark: Mark, entered: Callable[[], object] | None) -> Offer:
    """End a batch without waiting for the results of other workers."""
    if mark.is_from_log:
        return self.station.offer(mark, 0.0, entered, must=True)
    return Offer.ENTERED


def _from_the_beginning(self: Host) -> None:
    """Restart a worker without its memory from before the checkpoint."""
    kept = self.checkpoint
    saved, kept._saved = kept._saved, self._empty  # type: ignore[attr-defined]  # planted
    _RESTART(self)
    kept._saved = saved


def _where_it_was(self: Host) -> None:
    """Restart a worker where it failed, and let it take in again what it had."""
    self._left = self._computing = None
    self.record.go_back()


def _twice(self: WorkerRecord) -> None:
    """Record again what was recorded before a failure."""


def _on_with_the_item(self: Host) -> None:
    """Send the findings of the moment of failure afterwards."""
    left, computing = self._left, self._computing
    _RESTART(self)
    self._left, self._computing = left, computing


def _remembering_nothing(init: Callable[..., None]) -> Callable[..., None]:
    def planted(self: Host, *given: Any) -> None:
        init(self, *given)
        self._empty = self.checkpoint._saved  # type: ignore[attr-defined]  # a part of the machine is replaced

    return planted


_PUBLISH, _RESTART = Host._publish, Host._restart


@pytest.mark.parametrize(
    "planted",
    [
        [(Host, "_publish", _to_nobody)],
        [(Host, "_take_in_mark", _at_the_first_mark)],
        [
            (Host, "__init__", _remembering_nothing(Host.__init__)),
            (Host, "_restart", _from_the_beginning),
        ],
        [(Host, "_restart", _where_it_was)],
        [(WorkerRecord, "go_back", _twice)],
        [(Host, "_restart", _on_with_the_item)],
    ],
)
def test_a_mistake_in_the_room_is_found(
    monkeypatch: pytest.MonkeyPatch, planted: Sequence[tuple[type, str, object]]
) -> None:
    for each in planted:
        monkeypatch.setattr(*each)
    assert not is_right(simulate(*asked()))


def test_a_notice_that_is_not_sent_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    statements = (
        Statement("x", Window("max", Sensor("a"), 1_000, 1_000)),
        Statement("y", Window("max", Sensor("b"), 500, 1_000)),
        Statement("z", Arithmetic("-", Name("x"), Name("y"))),
    )
    config = ScriptConfig((Workflow("w", statements),), (("a", 7_200), ("b", 3_600)), 2, 0, 100)
    # The last tuple of b is in no window, so the last result of z needs a notice.
    events = ("a", 100), ("b", 700), ("a", 1_200), ("b", 2_100), ("a", 2_300)
    rows = [Row(at_ms * 1_000, at_ms * 1_000, sensor, 1.0) for sensor, at_ms in events]
    tuning = ScriptTuning("all-split")
    plan = Plan((Recording(tuple(rows)),), tuning=tuning, epoch_us=0)
    assert is_right(simulate(plan, config, 0))
    monkeypatch.setattr(Host, "_publish", _without_notices)
    assert not is_right(simulate(plan, config, 0))


def test_a_workload_contains_the_kills_of_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulate(*asked())
    assert run.workload.faults == (Fault("kill", 5), Fault("kill", 8))


def test_shedding_behind_the_log_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    full = {"queue_limit": "1", "when_full": "drop", "service_us": "50000"}
    run = simulate(*asked(**full))
    assert run.summary["shed"]
    assert is_right(run)

    def take_in(self: Host, item: Item, entered: Callable[[], object] | None = None) -> Offer:
        waiting = self.station.waiting
        if not isinstance(item, Mark | Message) and waiting > 1:
            return Offer.DROPPED
        return _TAKE_IN(self, item, entered)

    monkeypatch.setattr(ScriptCluster, "admits", lambda self, item: True)
    monkeypatch.setattr(Host, "take_in", take_in)
    assert not is_right(simulate(*asked(**full)))


_TAKE_IN = Host.take_in
