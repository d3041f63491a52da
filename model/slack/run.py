"""A workload through room ``slack`` (docs/slack.md, as a whole)."""

from model.slack.assumption import scored
from model.slack.machine import Task
from model.slack.rules import RULES, Rules
from model.vocabulary import SlackConfig, System, Trace, Workload
from model.windows.pipeline import Pipeline


def run(workload: Workload, rules: Rules = RULES) -> Trace:
    """The reference trace of a workload.

    Raises ``ValueError`` with one sentence for a configuration that cannot be.
    """
    config = SlackConfig.from_json(workload.config)
    tasks = [Task(config, number, rules) for number in range(config.tasks)]
    pipeline = Pipeline(
        config, tasks, lambda task, batch, _: (task.progress(batch),), rules, scored(config)
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
