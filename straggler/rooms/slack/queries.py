"""Queries of room ``slack`` on the command line: its own options, defaults by input."""

from collections.abc import Iterator

from model.vocabulary import SlackConfig
from model.vocabulary.settings import settings_of
from model.vocabulary.slack import METHODS
from model.vocabulary.windows import AGGREGATES
from straggler.inputs.tables import Recording
from straggler.options import Arguments, Option, setting_options
from straggler.rooms.windows import queries as windowed
from straggler.rooms.windows.queries import Defaults

PER = ("key", "task")
FINE = Defaults("5s", "1s", ("sum", "count"), PER)
BY_INPUT = dict.fromkeys(("flights", "january"), Defaults("6h", "1h", ("sum",), PER))

OWN = {
    name: each for name, each in settings_of(SlackConfig).items() if name not in windowed.OPTIONS
}
"""Settings that only this room has."""


def options() -> Iterator[Option]:
    """Yield the options of a query."""
    yield from windowed.options()
    yield from setting_options(OWN, everyday=("control", "eps", "delta"))


def queries(
    args: Arguments, input_name: str, recording: Recording
) -> Iterator[tuple[SlackConfig, str]]:
    """Yield the queries for an input, as the options say, each with its title.

    Raise :class:`UsageError` with one sentence that names the offending value.
    """
    usual = BY_INPUT.get(input_name, FINE)
    # Default aggregates that the method supports.
    suited = METHODS.get(args.method or "normal", AGGREGATES)
    aggregates = tuple(each for each in usual.aggregates if each in suited)
    defaults = usual._replace(aggregates=aggregates)
    for config, per in windowed.queries(SlackConfig, args, defaults, recording, tuple(OWN)):
        yield config, _describe(config, per)


def _describe(config: SlackConfig, per: str) -> str:
    """Return the query in a few words: window, slide, and all that differs from the defaults."""
    plain = SlackConfig(config.size_us, config.slide_us, lambda_thr=config.lambda_thr)
    return windowed.describe(config, plain, per)
