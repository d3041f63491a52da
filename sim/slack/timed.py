"""Room ``slack`` in time (docs/slack.md)."""

from collections.abc import Sequence
from operator import attrgetter

from model.slack.assumption import scored
from model.slack.machine import Task
from model.slack.quick import Quick
from model.vocabulary import SlackConfig, Workload
from model.vocabulary.slack import Judged
from sim.distributions import FloatArray
from sim.windows.observed import Observed
from sim.windows.series import Series, means, series_of
from sim.windows.summary import Summary, mean, summary_of
from sim.windows.timed import Cluster, Room, Rule


def room_of(
    workload: Workload,
    cluster: Cluster,
    start_us: int,
    ends_us: Sequence[float] | None = None,
    sample_at_us: Sequence[float] = (),
) -> Room[Task]:
    """The room for a workload; see :class:`sim.windows.timed.Room`."""
    config = SlackConfig.from_json(workload.config)
    rule = Rule(
        config,
        lambda number: Task(config, number),
        lambda task, batch, _is_flush: (task.progress(batch),),
        scored(config),
        lambda task: Quick(task).arrive,
        wait_us=attrgetter("slack_us"),
        share=lambda task: task.factor.alpha,
    )
    return Room(workload, rule, cluster, start_us, ends_us, sample_at_us)


def judged(run: Observed[Task]) -> list[tuple[float, Judged]]:
    """Judgements before the flush, with their times."""
    flush_batch = len(run.room.batches)
    return [
        (at_us, step)
        for task in run.room.tasks
        for at_us, _row, step in task.of(Judged)
        if step.batch != flush_batch
    ]


def timeline(run: Observed[Task]) -> Series:
    """Columns of :func:`sim.windows.series.series_of`, ``slack_us`` and ``alpha``.

    And ``required_coverage``: of the windows judged in the interval.
    """
    series = series_of(run, "slack_us", "alpha")
    judgements = judged(run)
    required = [step.n_req / (step.n_rcv + step.n_late) for _, step in judgements]
    judged_us = [at_us for at_us, _ in judgements]
    grid_us: FloatArray = series["time_us"]
    return {**series, "required_coverage": means(judged_us, required, grid_us)}


def figures(run: Observed[Task]) -> Summary:
    """Figures of :func:`sim.windows.summary.summary_of`, shares of misses and of wrong answers.

    A first answer is wrong if its error is ``eps`` or more.
    """
    misses = [step.miss for _, step in judged(run)]
    errors = run.answers.errors(run.answers.by_stream)
    eps = SlackConfig.from_json(run.room.workload.config).eps
    return {
        **summary_of(run, "slack_us"),
        **mean("miss_share", misses),
        **mean("wrong_share", errors >= eps),
    }
