"""A workload through room ``watermark`` (docs/watermark.md, as a whole)."""

from model.vocabulary import Step, System, Trace, WatermarkConfig, Workload
from model.watermark.machine import Task
from model.watermark.rules import RULES, Rules
from model.windows.correction import Scored, nothing_scored
from model.windows.pipeline import Pipeline, TaskPipeline


def ended(task: Task, _batch: int, is_flush: bool) -> list[Step]:
    """Return what a task records at the end of a batch, or of a flush."""
    return [] if is_flush else task.end_batch()


def scored_by(config: WatermarkConfig) -> Scored | None:
    """Return what corrections record beside revisions; ``None`` without corrections."""
    return nothing_scored if config.corrections else None


def task_pipeline(config: WatermarkConfig, number: int) -> TaskPipeline[Task]:
    """Return one task of a query, with its history and a store of its own."""
    return TaskPipeline(config, Task(config, number), ended, RULES, scored_by(config))


def run(workload: Workload, rules: Rules = RULES) -> Trace:
    """Return the reference trace of a workload.

    Raises ``ValueError`` with one sentence for a configuration that cannot be.
    """
    config = WatermarkConfig.from_json(workload.config)
    tasks = [Task(config, number, rules) for number in range(config.tasks)]
    return Pipeline(config, tasks, ended, rules, scored_by(config)).run(workload)


def system(rules: Rules) -> System:
    """A System that follows these rules."""

    def run_with_rules(workload: Workload, /) -> Trace:
        return run(workload, rules)

    return run_with_rules


def make_system() -> System:
    """The reference as a System."""
    return system(RULES)
