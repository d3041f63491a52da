"""Queries of room ``slack`` on the command line: options, defaults an input, validation."""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import fields
from itertools import product
from typing import Any, NamedTuple

from model.vocabulary import SlackConfig
from model.vocabulary.slack import AGGREGATES, CONTROLS, METHODS, SAMPLINGS
from properties.durations import duration, parse_duration_us, write_duration
from properties.errors import UsageError, counted
from properties.slack.limits import refuse_query
from properties.tables import Recording

BATCHES = 8
"""Micro-batches where ``--batches`` does not say otherwise."""
KEYED_TASKS = 2
PER = ("key", "task")


class Defaults(NamedTuple):
    """What is asked of an input when the options do not say."""

    window: str
    slide: str
    aggregates: tuple[str, ...]


FINE = Defaults("5s", "1s", ("sum", "count"))
BY_INPUT = {"flights": Defaults("6h", "1h", ("sum",))}


Reader = Callable[[str], Any]

# Option, setting of SlackConfig, how it is read, what it means.
SETTINGS: tuple[tuple[str, str, Reader, str], ...] = (
    ("--slide", "slide_us", duration, "window slide s, at least W / 10,000"),
    ("--q", "q", float, "rank of the aggregate quantile (0.5)"),
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
    ("--feedback", "feedback_us", duration, "how long after its end a window is judged (W)"),
    ("--max-slack", "max_slack_us", duration, "upper limit of K"),
    ("--max-future", "max_future_us", duration, "how far ahead of its arrival a tuple may be"),
    ("--gamma", "gamma_us", duration, "event time pending before a correction starts (5s)"),
    ("--max-age", "max_age_us", duration, "age of a pending tuple that starts one (4 W)"),
)


def add_options(group: argparse._ArgumentGroup) -> None:
    """Everything that can be asked of a sliding-window query, except for its window."""
    for flag, setting, read, meaning in SETTINGS:
        metavar = "DURATION" if read is duration else flag[2:].upper()
        group.add_argument(flag, dest=setting, type=read, metavar=metavar, help=meaning)
    group.add_argument(
        "--aggregate",
        action="append",
        metavar="AGGREGATE",
        help=f"{', '.join(AGGREGATES)}; may be repeated (sum, except for flights also count)",
    )
    group.add_argument(
        "--per",
        action="append",
        choices=PER,
        help="a result per key, or one for all keys of a task (both)",
    )
    group.add_argument("--tasks", type=int, help=f"tasks ({KEYED_TASKS} per key, 1 per task)")
    group.add_argument(
        "--no-dedup", dest="dedup", action="store_false", default=None, help="trust identities"
    )


def queries(args: argparse.Namespace, input_name: str) -> Iterator[SlackConfig]:
    """The queries that the options ask of an input.

    Raises :class:`UsageError` with one sentence that names the offending value.
    """
    defaults = BY_INPUT.get(input_name, FINE)
    given = {
        item.name: value
        for item in fields(SlackConfig)
        if item.name != "aggregate" and (value := getattr(args, item.name, None)) is not None
    }
    given["size_us"] = (
        parse_duration_us(defaults.window) if args.window_us is None else args.window_us
    )
    given.setdefault("slide_us", parse_duration_us(defaults.slide))
    # Of the aggregates that nobody asked for, those that the method is for.
    suited = METHODS.get(given.get("method", "normal"), AGGREGATES)
    usual = [aggregate for aggregate in defaults.aggregates if aggregate in suited]
    for aggregate, per in product(args.aggregate or usual, args.per or PER):
        keyed = per == "key"
        tasks = given.get("tasks", KEYED_TASKS if keyed else 1)
        try:
            settings = {**given, "aggregate": aggregate, "keyed": keyed, "tasks": tasks}
            config = SlackConfig(**settings)
        except ValueError as error:
            raise UsageError(_in_options(str(error))) from error
        refuse_query(
            "--window", config.size_us, "--slide", config.slide_us, "--tasks", config.tasks
        )
        yield config


def _in_options(sentence: str) -> str:
    """An error about a setting, with the name of the option that sets it."""
    others = (("--window", "size_us"), ("--aggregate", "aggregate"), ("--tasks", "tasks"))
    for flag, setting in (*others, *(each[:2] for each in SETTINGS)):
        if sentence.startswith(f"{setting} "):
            return flag + sentence.removeprefix(setting)
    return sentence


def refuse_values(recording: Recording, config: SlackConfig) -> None:
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


def describe(config: SlackConfig) -> str:
    """The query in a few words: window, slide, and whatever is not as by default."""
    per = "key" if config.keyed else "task"
    size, slide = write_duration(config.size_us), write_duration(config.slide_us)
    plain = SlackConfig(config.size_us, config.slide_us, lambda_thr=config.lambda_thr)
    told = ("size_us", "slide_us", "aggregate", "keyed", "tasks")
    parts = [
        f"{item.name}={getattr(config, item.name)}"
        for item in fields(config)
        if item.name not in told and getattr(config, item.name) != getattr(plain, item.name)
    ]
    return ", ".join([f"{config.aggregate} per {per}", f"{size}/{slide}", *parts])
