"""Queries of room ``watermark`` on the command line: its own options, defaults by input."""

from collections.abc import Iterator
from functools import partial

from model.vocabulary import WatermarkConfig, Workload
from model.vocabulary.durations import parse_duration_us, write_duration
from model.vocabulary.settings import settings_of
from model.vocabulary.watermark import CLOCKS
from straggler.errors import UsageError
from straggler.inputs.tables import Recording
from straggler.options import Arguments, Option, setting_options
from straggler.rooms.windows import limits
from straggler.rooms.windows import queries as windowed
from straggler.rooms.windows.queries import Defaults

FINE = Defaults("5s", None, ("sum",), ("task", "device"))
BY_INPUT = dict.fromkeys(("flights", "january"), Defaults("6h", None, ("sum",), ("task",)))
MAX_WAIT = dict.fromkeys(BY_INPUT, "12h")
"""Default longest wait, by input; the window of ``FINE`` for all other inputs."""
CLOCKS_AT_ONCE = 100_000
"""Largest input whose clocks are all compared by default, in arrivals."""

K_MAX = 10_000
"""Largest micro-cluster: every arrival is compared with all of its arrivals."""

OWN = {
    name: each
    for name, each in settings_of(WatermarkConfig).items()
    if name not in windowed.OPTIONS
}
"""Settings that only this room has."""
_USUAL = {"max_wait_us": "5s, for flights and january 12h", "clocks": "by size"}


def options() -> Iterator[Option]:
    """Yield the options of a query."""
    yield from windowed.options()
    yield from setting_options(OWN, _USUAL, ("max_wait_us", "reading", "k"))


def queries(
    args: Arguments, input_name: str, recording: Recording
) -> Iterator[tuple[WatermarkConfig, str]]:
    """Yield the queries for an input, as the options say, each with its title.

    Raise :class:`UsageError` with one sentence that names the offending value.
    """
    usual = BY_INPUT.get(input_name, FINE)
    long = len(recording.events) > CLOCKS_AT_ONCE
    plain = {
        "max_wait_us": parse_duration_us(MAX_WAIT.get(input_name, FINE.window)),
        "clocks": CLOCKS[long],
        "corrections": False,
    }
    make = partial(_config, plain)
    for config, per in windowed.queries(make, args, usual, recording, tuple(OWN)):
        _refuse_cluster("--k", config.k)
        yield config, _describe(config, per)


def refuse_config(config: WatermarkConfig, workload: Workload) -> None:
    """Refuse a query of a stored workload with settings above their limits."""
    limits.refuse_config(config, workload)
    _refuse_cluster("k", config.k)


def _refuse_cluster(name: str, k: int) -> None:
    if k > K_MAX:
        raise UsageError(f"{name} is {k}; at most {K_MAX:,} are allowed")


def _config(plain: dict[str, object], **given: object) -> WatermarkConfig:
    return WatermarkConfig.from_json({**plain, **given})


def _describe(config: WatermarkConfig, per: str) -> str:
    """Return the query in a few words: window, slide, and all that differs from the defaults."""
    plain = WatermarkConfig(config.size_us, config.slide_us, config.max_wait_us)
    text = windowed.describe(config, plain, per, ("clocks",))
    return f"{text}, M={write_duration(config.max_wait_us)}"
