"""A workload through room ``slack`` (docs/slack.md, as a whole)."""

from model.slack.assumption import scored
from model.slack.machine import Task
from model.slack.rules import RULES, Rules
from model.vocabulary import SlackConfig, System, Trace, Workload
from model.vocabulary.slack import Progress
from model.windows.pipeline import Pipeline, TaskPipeline


def ended(task: Task, batch: int, _is_flush: bool) -> tuple[Progress]:
    """Return what a task records at the end of a batch, or of a flush."""
    return (task.progress(batch),)


def task_pipeline(config: SlackConfig, number: int) -> TaskPipeline[Task]:
    """Return one task of a query, with its history and a store of its own."""
    return TaskPipeline(config, Task(config, number), ended, RULES, scored(config))


def run(workload: Workload, rules: Rules = RULES) -> Trace:
    """Return the reference trace of a workload.

    Raises ``ValueError`` with one sentence for a configuration that cannot be.
    """
    config = SlackConfig.from_json(workload.config)
    tasks = [Task(config, number, rules) for number in range(config.tasks)]
    return Pipeline(config, tasks, ended, rules, scored(config)).run(workload)


def system(rules: Rules) -> System:
    """A System that follows these rules."""

    def run_with_rules(workload: Workload, /) -> Trace:
        return run(workload, rules)

    return run_with_rules


def make_system() -> System:
    """The reference as a System."""
    return system(RULES)
