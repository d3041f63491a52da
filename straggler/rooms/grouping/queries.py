"""Routers of room ``grouping`` on the command line: options, defaults by input, validation."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from model.vocabulary import GroupingConfig
from model.vocabulary.grouping import POLICIES
from model.vocabulary.settings import JsonObject, PlainData, nearest, settings_of
from straggler.errors import UsageError, refuse_unknown
from straggler.options import QUERY, Arguments, Option
from straggler.rooms.grouping.limits import INSTANCES_MAX, refuse_config

BATCHES = 3
"""Default of ``--batches``."""
WINDOWS = 2
INSTANCES = 8
SENDERS = 2
FAST_US, SLOW_US = 10, 50
"""Times of the first and of the second half of the instances."""
ALL = "all"


class Defaults(NamedTuple):
    """Default routers of an input."""

    policies: tuple[str, ...] = ("tag",)
    settings: tuple[str, ...] = ()


BY_INPUT = {
    # The input is small enough that every policy runs in Spark.
    "tokens": Defaults(POLICIES),
    # The most frequent aircraft has one flight in 600.
    "tailnum": Defaults(settings=("theta=0.001",)),
}


TIMES = "times_us"
SETTINGS = {name: each for name, each in settings_of(GroupingConfig).items() if name != "policy"}
"""Settings that ``--set`` takes besides :data:`TIMES`."""
NAMES = (*SETTINGS, TIMES)


def options() -> Iterator[Option]:
    """Yield the options of a router."""
    policies = f"{', '.join(POLICIES)}, or {ALL}; may be repeated (by input)"
    yield Option("--policy", policies, multiple=True, metavar="POLICY", section=QUERY)
    router = (
        f"{', '.join(NAMES)}; may be repeated ({INSTANCES} instances, half of them"
        f" {SLOW_US // FAST_US} times slower, {SENDERS} senders, {WINDOWS} windows)"
    )
    yield Option("--set", router, "router", multiple=True, metavar="NAME=VALUE", section=QUERY)


def queries(args: Arguments, input_name: str, tuples: int) -> Iterator[tuple[GroupingConfig, str]]:
    """Yield the routers for an input with ``tuples`` tuples, as the options say, each with a title.

    Raise :class:`UsageError` with one sentence that names the offending value.
    """
    defaults = BY_INPUT.get(input_name, Defaults())
    written = dict(_setting(text) for text in (*defaults.settings, *(args.router or ())))
    others = [f"{name}={text}" for name, text in written.items()]
    try:
        given = _complete({name: _read(name, text) for name, text in written.items()}, tuples)
        policies = _policies(args.policy or defaults.policies)
        configs = [GroupingConfig(policy=policy, **given) for policy in policies]
    except ValueError as error:
        raise UsageError(f"--set: {error}") from error
    for config in configs:
        refuse_config(config)
        yield config, ", ".join([config.policy, *others])


def _policies(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        refuse_unknown("policy", name, (*POLICIES, ALL))
    return POLICIES if ALL in names else tuple(dict.fromkeys(names))


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set {text!r} is not NAME=VALUE")
    if name not in NAMES:
        hint = "; that is --policy" if name == "policy" else nearest(name, NAMES)
        raise UsageError(f"--set: there is no setting {name!r}, only {', '.join(NAMES)}{hint}")
    return name, value


def _read(name: str, text: str) -> object:
    """Return the value of a setting; refuse a text without one."""
    if name != TIMES:
        return SETTINGS[name].read(text)
    try:
        return _parse_times(text)
    except ValueError as error:
        example = "10,10,50, or 10,10,50/3:50,10,10 from micro-batch 3"
        msg = f"{TIMES} is {text!r}; it must be integers with commas between, like {example}"
        raise ValueError(msg) from error


def _parse_times(text: str) -> tuple[tuple[int, tuple[int, ...]], ...]:
    pairs = (part.rpartition(":") for part in text.split("/"))
    return tuple(
        [(int(batch or 0), tuple(map(int, times.split(",")))) for batch, _, times in pairs]
    )


def _complete(given: JsonObject, tuples: int) -> dict[str, PlainData]:
    """Return the settings completed by defaults; times depend on the number of instances."""
    n = given.get("instances", INSTANCES)
    # GroupingConfig refuses impossible numbers; a list of that many times might not end.
    times_us = (
        () if not 0 < n <= INSTANCES_MAX else (FAST_US,) * (n - n // 2) + (SLOW_US,) * (n // 2)
    )
    usual = {
        "instances": n,
        "senders": SENDERS,
        "window_tuples": max(1, tuples // WINDOWS),
        "times_us": ((0, times_us),) if times_us else (),
    }
    return {**usual, **given}
