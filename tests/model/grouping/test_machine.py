"""The machine: the way in which calls are split changes nothing, and a saved state can go on."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.grouping import run
from model.grouping.machine import Machine
from model.vocabulary import Event, GroupingConfig, Step, Workload
from model.vocabulary.grouping import Route
from tests.model.grouping.strategies import workloads


def steps_of(workload: Workload, order: st.DataObject, *, restarts: bool) -> Iterator[Step]:
    """Route tuple by tuple, senders in any order, and serve in any order once all are routed."""
    config = GroupingConfig.from_json(workload.config)
    machine, other = Machine(config), Machine(config)
    window = tuples = 0
    routed: list[tuple[int, int, Event]] = []
    for number, batch in enumerate(workload.batches()):
        if machine.is_full(tuples):
            yield from machine.rebalance(config.times_of(number))
            window, tuples = window + 1, 0
        parts = [[e for e in batch if e.seq % config.senders == s] for s in range(config.senders)]
        while any(parts):
            sender = order.draw(st.sampled_from([s for s, part in enumerate(parts) if part]))
            event = parts[sender].pop(0)
            instance = machine.route(sender, event.key)
            yield Route(event.seq, sender, instance)
            routed.append((instance, window, event))
            if not parts[sender]:
                machine.end_batch(sender)
            if restarts and order.draw(st.booleans()):
                # Another machine continues from this state, and forgets its own.
                other.restore(machine.saved())
                machine, other = other, machine
        tuples += len(batch)
    last = Machine(config)
    for instance, at, event in order.draw(st.permutations(routed)):
        yield from last.serve(instance, at, event)
    yield from last.results()


@given(workload=workloads(), order=st.data())
def test_routes_do_not_depend_on_how_calls_are_split(
    workload: Workload, order: st.DataObject
) -> None:
    found = steps_of(workload, order, restarts=False)
    assert sorted(found, key=repr) == sorted(run(workload).steps(), key=repr)


@given(workload=workloads(), order=st.data())
def test_senders_go_on_from_what_was_saved(workload: Workload, order: st.DataObject) -> None:
    found = steps_of(workload, order, restarts=True)
    assert sorted(found, key=repr) == sorted(run(workload).steps(), key=repr)


@pytest.mark.parametrize("policy", ["tag", "dag", "cg", "dkg", "round-robin"])
def test_a_saved_state_does_not_change_when_its_machine_continues(policy: str) -> None:
    machine = Machine(GroupingConfig(3, policy, window_tuples=2))
    keys = "abcaabbbca"
    for key in keys:
        machine.route(0, key)
    saved = machine.saved()

    def go_on() -> list[object]:
        machine.restore(saved)
        routed = [machine.route(0, key) for key in keys]
        machine.end_batch(0)
        heavy = machine.rebalance((1, 2, 3))
        return [routed, heavy, [machine.route(0, key) for key in keys]]

    assert go_on() == go_on()
