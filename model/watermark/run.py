"""A workload through room ``watermark`` (docs/watermark.md, as a whole)."""

from model.vocabulary import System, Trace, WatermarkConfig, Workload
from model.watermark.machine import Task
from model.watermark.rules import RULES, Rules
from model.windows.correction import nothing_scored
from model.windows.pipeline import Pipeline


def run(workload: Workload, rules: Rules = RULES) -> Trace:
    """The reference trace of a workload.

    Raises ``ValueError`` with one sentence for a configuration that cannot be.
    """
    config = WatermarkConfig.from_json(workload.config)
    tasks = [Task(config, number, rules) for number in range(config.tasks)]
    pipeline = Pipeline(
        config,
        tasks,
        lambda task, _batch, is_flush: () if is_flush else task.end_batch(),
        rules,
        nothing_scored if config.corrections else None,
    )
    return pipeline.run(workload)


def system(rules: Rules) -> System:
    """A System that follows these rules."""

    def run_with_rules(workload: Workload, /) -> Trace:
        return run(workload, rules)

    return run_with_rules


def make_system() -> System:
    """The reference as a System."""
    return system(RULES)
