"""Queries of room ``slack`` on the command line: its own options, defaults an input."""

import argparse
from collections.abc import Iterator

from model.vocabulary import SlackConfig
from model.vocabulary.answers import AGGREGATES
from model.vocabulary.slack import CONTROLS, METHODS, SAMPLINGS
from properties.data.durations import duration
from properties.data.tables import Recording
from properties.errors import UsageError, counted
from properties.windows import queries as windowed
from properties.windows.queries import Defaults

PER = ("key", "task")
FINE = Defaults("5s", "1s", ("sum", "count"), PER)
BY_INPUT = {"flights": Defaults("6h", "1h", ("sum",), PER)}

SETTINGS: tuple[windowed.Setting, ...] = (
    ("--control", "control", str, f"{', '.join(CONTROLS)} (conformal)"),
    ("--eps", "eps", float, "relative error that the first answer should stay below (0.05)"),
    ("--delta", "delta", float, "probability with which it may not (0.05)"),
    ("--lambda-thr", "lambda_thr", float, "required coverage, instead of eps and delta"),
    ("--method", "method", str, f"of finding the required coverage: {', '.join(METHODS)} (normal)"),
    (
        "--sampling",
        "sampling",
        str,
        f"what is assumed about missing tuples: {', '.join(SAMPLINGS)} (exchangeable)",
    ),
    ("--cv", "cv", float, "coefficient of variation of the values (estimated)"),
    ("--fixed-slack", "fixed_slack_us", duration, "K of the control fixed (0s)"),
    ("--learning-rate", "learning_rate", float, "step of the control conformal (0.05)"),
    ("--kp", "kp", float, "proportional gain of the control pd (0.2)"),
    ("--kd", "kd", float, "derivative gain of the control pd (4)"),
    ("--max-slack", "max_slack_us", duration, "upper limit of K"),
)


def add_options(group: argparse._ArgumentGroup) -> None:
    """What only this room can be asked."""
    windowed.add_settings(group, SETTINGS)


def queries(
    args: argparse.Namespace, input_name: str, recording: Recording
) -> Iterator[tuple[SlackConfig, str]]:
    """The queries that the options ask of an input, each with its title.

    Raises :class:`UsageError` with one sentence that names the offending value.
    """
    usual = BY_INPUT.get(input_name, FINE)
    # Of the aggregates that nobody asked for, those that the method is for.
    suited = METHODS.get(args.method or "normal", AGGREGATES)
    aggregates = tuple(each for each in usual.aggregates if each in suited)
    defaults = usual._replace(aggregates=aggregates)
    for config, per in windowed.queries(SlackConfig, args, defaults, recording, SETTINGS):
        _refuse_values(recording, config)
        yield config, _describe(config, per)


def _refuse_values(recording: Recording, config: SlackConfig) -> None:
    """Refuse values that the query can promise nothing for, naming the first of them."""
    if not config.needs_positive_values:
        return
    negative = [event for event in recording.events if event.value < 0]
    if negative:
        first = negative[0]
        raise UsageError(
            f"{recording.label} has {counted(len(negative), 'negative value')} (the first:"
            f" {first.value} at arrival {first.seq + 1}), but a relative error of a sum needs"
            " values of at least 0; ask for --control max or fixed, or another --aggregate"
        )


def _describe(config: SlackConfig, per: str) -> str:
    """The query in a few words: window, slide, and whatever is not as by default."""
    plain = SlackConfig(config.size_us, config.slide_us, lambda_thr=config.lambda_thr)
    return windowed.describe(config, plain, per)
