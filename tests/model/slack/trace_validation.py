"""Validate the recorded stream of one task against ``model.slack.machine.Task``.

Rules of this file:

* The unit of validation is what one task recorded in one batch; the order of steps in it means
  nothing.
* Only kinds of steps that the trace contains are compared.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from model.checking.claims import Verdict
from model.checking.validation import validate
from model.slack.machine import Task, TaskState
from model.slack.rules import RULES, Rules
from model.vocabulary import Event, SlackConfig, Step, Trace, Workload, task_of
from model.vocabulary.slack import Judged, Progress
from model.vocabulary.trace import kind_of
from model.vocabulary.windows import Late, Rejected, Result

STREAM_WORDS: tuple[type, ...] = (Result, Late, Judged, Rejected, Progress)
SHOWN = 5


class RecordedBatch(NamedTuple):
    """The arrivals and recorded steps of one task in one batch, or in a flush without arrivals."""

    batch: int
    arrivals: tuple[Event, ...]
    is_flush: bool
    steps: Counter[Step]


def validate_task(
    workload: Workload,
    trace: Trace,
    task: int,
    words: Collection[type] = STREAM_WORDS,
    rules: Rules = RULES,
) -> Verdict:
    """Return whether the machine does what a task recorded, batch by batch.

    ``words`` are some of STREAM_WORDS. Floats are compared exactly, so sums must be exact.
    """
    config = SlackConfig.from_json(workload.config)
    kinds = {word for word in words if trace.of(word)}

    def steps_of(state: TaskState, given: RecordedBatch) -> tuple[TaskState, Counter[Step]]:
        machine = Task(config, task, rules)
        machine.restore(state)
        steps = {step for step in _steps(machine, given) if type(step) in kinds}
        return machine.state(), Counter(steps)

    def follow(state: TaskState, given: RecordedBatch) -> Iterable[TaskState]:
        after, steps = steps_of(state, given)
        return (after,) if steps == given.steps else ()

    def explain(state: TaskState, given: RecordedBatch) -> Iterable[str]:
        _, steps = steps_of(state, given)
        yield from _listed("Not recorded", steps - given.steps)
        yield from _listed("Not allowed", given.steps - steps)

    return validate(
        (TaskState(),),
        follow,
        _recorded(workload, trace, config, task, kinds),
        claim=f"task {task} did what the machine does",
        describe=lambda given: f"{'flush, ' * given.is_flush}batch {given.batch} of task {task}",
        explain=explain,
    )


def _steps(machine: Task, given: RecordedBatch) -> Iterator[Step]:
    before = machine.n_accepted
    for event in given.arrivals:
        yield from machine.arrive(event, given.batch)
    if given.is_flush:
        yield from machine.flush(given.batch)
    if machine.n_accepted > before or (given.is_flush and machine.n_accepted):
        yield from machine.end_batch(given.batch, given.is_flush)


def _recorded(
    workload: Workload, trace: Trace, config: SlackConfig, task: int, kinds: Collection[type]
) -> Iterator[RecordedBatch]:
    by_batch: dict[int, Counter[Step]] = {}
    words: Iterable[Any] = kinds
    for word in words:
        for step in trace.of(word):
            if step.task == task:
                by_batch.setdefault(step.batch, Counter())[step] += 1
    batches = tuple(workload.batches())
    for number, batch in enumerate(batches):
        mine = tuple(event for event in batch if task_of(event.key, config.tasks) == task)
        yield RecordedBatch(number, mine, False, by_batch.get(number, Counter()))
    if workload.flush:
        number = len(batches)
        yield RecordedBatch(number, (), True, by_batch.get(number, Counter()))


def _listed(what: str, steps: Collection[Step]) -> Iterator[str]:
    for step in sorted(steps, key=repr)[:SHOWN]:
        fields = ", ".join(f"{name} {value!r}" for name, value in step._asdict().items())
        yield f"{what}: {kind_of(type(step))} {fields}."
