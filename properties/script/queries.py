"""Sets of scripts on the command line: which, for which sensors, on how many workers."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from model.vocabulary import ScriptConfig
from model.vocabulary.script import Workflow
from properties.durations import parse_duration_us, write_duration
from properties.errors import UsageError, counted
from properties.script.files import read_workflows
from properties.script.inputs import Network

BATCHES = 4
"""Micro-batches where ``--batches`` does not say otherwise."""
WORKERS = 3
CAP_PERCENT = 125

# Setting of ScriptConfig, option.
OPTIONS = (
    ("workers", "--workers"),
    ("lateness_us", "--lateness"),
    ("cap_percent", "--cap-percent"),
    ("a sensor", "--key: a sensor"),
)


def add_options(group: argparse._ArgumentGroup) -> None:
    """What only this room can be asked."""
    group.add_argument(
        "--script",
        dest="scripts",
        nargs="+",
        action="extend",
        type=Path,
        metavar="FILE",
        help="sensor scripts that run together (those that come with the input)",
    )
    group.add_argument(
        "--sensors",
        metavar="NAME|FILE.csv",
        help="the sensors there are (those of the input, as often as they send)",
    )
    group.add_argument(
        "--cap-percent",
        type=int,
        metavar="N",
        help=f"most that a worker should have, of an even share ({CAP_PERCENT})",
    )


def query(args: argparse.Namespace, network: Network) -> tuple[ScriptConfig, str]:
    """The scripts that the options ask of a network, and what they are called.

    Raises :class:`UsageError` with one sentence that names the offending value.
    """
    chosen = args.scripts or network.scripts
    if not chosen:
        raise UsageError(f"no scripts come with {network.label}: --script names some")
    workflows = read_workflows(different(chosen), network.per_hour)
    lateness_us = args.lateness_us
    if lateness_us is None and network.lateness is not None:
        lateness_us = parse_duration_us(network.lateness)
    workers = WORKERS if args.workers is None else args.workers
    cap_percent = CAP_PERCENT if args.cap_percent is None else args.cap_percent
    config = config_of(workflows, network, workers, lateness_us, cap_percent)
    return config, _describe(config)


def config_of(
    workflows: Sequence[Workflow],
    network: Network,
    workers: int,
    lateness_us: int | None,
    cap_percent: int = CAP_PERCENT,
) -> ScriptConfig:
    """The settings; what cannot be is told in the words of the command line."""
    sensors = tuple(network.per_hour.items())
    try:
        return ScriptConfig(tuple(workflows), sensors, workers, lateness_us, cap_percent)
    except ValueError as error:
        raise UsageError(_in_options(str(error))) from error


def different(files: Sequence[Path]) -> Sequence[Path]:
    """The files, if their names differ: those are what scripts are called by.

    Raises :class:`UsageError` with one sentence.
    """
    names: dict[str, Path] = {}
    for path in files:
        if path.stem in names:
            told = f"{str(names[path.stem])!r} and {str(path)!r}"
            raise UsageError(f"two scripts, {told}, would both be called {path.stem!r}")
        names[path.stem] = path
    return files


def _in_options(sentence: str) -> str:
    """An error about a setting, with the name of the option that sets it."""
    for setting, option in OPTIONS:
        if sentence.startswith(f"{setting} "):
            return option + sentence.removeprefix(setting)
    return sentence


def _describe(config: ScriptConfig) -> str:
    flows = config.workflows
    which = flows[0].name if len(flows) == 1 else counted(len(flows), "script")
    late = config.lateness_us
    times = "nothing late" if late is None else f"late after {write_duration(late)}"
    usual = config.cap_percent == CAP_PERCENT
    cap = "" if usual else f", cap {config.cap_percent}%"
    return f"{which}, {counted(config.workers, 'worker')}, {times}{cap}"
