"""Queries of room ``slack`` on the command line: its own options, defaults by input."""

from collections.abc import Iterator

from model.vocabulary import SlackConfig
from model.vocabulary.settings import settings_of
from model.vocabulary.slack import METHODS
from model.vocabulary.windows import AGGREGATES
from properties.data.tables import Recording
from properties.errors import UsageError, counted
from properties.options import Arguments, Option, setting_options
from properties.windows import queries as windowed
from properties.windows.queries import Defaults

PER = ("key", "task")
FINE = Defaults("5s", "1s", ("sum", "count"), PER)
BY_INPUT = {"flights": Defaults("6h", "1h", ("sum",), PER)}

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
    """Return the query in a few words: window, slide, and all that differs from the defaults."""
    plain = SlackConfig(config.size_us, config.slide_us, lambda_thr=config.lambda_thr)
    return windowed.describe(config, plain, per)
