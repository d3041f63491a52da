"""Sets of scripts on the command line: files, sensors, workers and watermark."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from model.vocabulary import ScriptConfig
from model.vocabulary.durations import parse_duration_us, write_duration
from model.vocabulary.script.config import CLUSTER, WATERMARKS
from model.vocabulary.script.tree import Sensor, Workflow, walk
from model.vocabulary.settings import settings_of
from straggler.errors import UsageError, counted
from straggler.options import PATH, QUERY, Arguments, Option, in_options, setting_options
from straggler.rooms.script import inputs, limits
from straggler.rooms.script.inputs import Network, Texts, read_all, workflows

BATCHES = 4
"""Default of ``--batches``."""
WORKERS = 3
CAP_PERCENT = 125

SETTINGS = settings_of(ScriptConfig)
OTHERS = {"a sensor": "--key: a sensor"}
_USUAL = {"cap_percent": str(CAP_PERCENT), "watermark": "fixed"}


SENSORS = Option(
    "--sensors",
    "the known sensors, with their rates (those of the input)",
    metavar="NAME|FILE.csv",
    section=QUERY,
)


def options() -> Iterator[Option]:
    """Yield the options of a set of scripts."""
    yield Option(
        "--script",
        "sensor scripts that run together (those of the input)",
        "scripts",
        type=PATH,
        metavar="FILE...",
        multiple=True,
        takes_several=True,
        section=QUERY,
    )
    yield SENSORS
    yield from setting_options({"cap_percent": SETTINGS["cap_percent"]}, _USUAL)
    yield from watermark_options()


def watermark_options() -> Iterator[Option]:
    """Yield the options of a sensor's watermark."""
    names = ("watermark", "cluster", "idle_after_us")
    return setting_options({name: SETTINGS[name] for name in names})


def load_scripts(args: Arguments) -> Texts:
    """Read the scripts that the options name, before the inputs, which may take long.

    Raise :class:`UsageError` with one sentence for a fault that does not depend on the input.
    """
    texts = read_all(refuse_equal_names(args.scripts or ()))
    known = None if args.sensors is None else inputs.load_sensors(args.sensors)
    written = workflows(texts, known)
    if written:
        per_hour = (
            dict.fromkeys(sensors_of(written), inputs.USUAL_PER_HOUR) if known is None else known
        )
        # The input may bring a lateness, which is not known yet.
        config = _config(args, written, per_hour, "0s")
        limits.refuse_impossible(config, (), "")
    return texts


def query(args: Arguments, network: Network, texts: Texts) -> tuple[ScriptConfig, str]:
    """Return the query of the scripts, or of the scripts of a network, and its title.

    Raise :class:`UsageError` with one sentence that names the offending value.
    """
    texts = texts or read_all(refuse_equal_names(network.scripts))
    if not texts:
        raise UsageError(f"no scripts come with {network.sent.label}: --script names some")
    written = workflows(texts, network.per_hour)
    config = _config(args, written, network.per_hour, network.lateness)
    return config, _describe(config)


def _config(
    args: Arguments, written: Sequence[Workflow], per_hour: Mapping[str, int], lateness: str | None
) -> ScriptConfig:
    """Return the query with the settings of the options, or with the defaults.

    Refusals name options of the command line.
    """
    lateness_us = args.lateness_us
    if lateness_us is None and lateness is not None:
        lateness_us = parse_duration_us(lateness)
    watermark = args.watermark or "fixed"
    if args.idle_after_us is not None and lateness_us is None:
        raise UsageError("--idle-after needs --lateness: how far an idle sensor follows the others")
    if watermark in WATERMARKS[1:] and lateness_us is None:
        raise UsageError(f"--watermark {watermark} needs --lateness: the longest wait")
    if lateness_us is not None and lateness_us < 0:
        raise UsageError(f"--lateness is {write_duration(lateness_us)}; it must be at least 0")
    try:
        return ScriptConfig(
            tuple(written),
            tuple(per_hour.items()),
            WORKERS if args.workers is None else args.workers,
            lateness_us,
            CAP_PERCENT if args.cap_percent is None else args.cap_percent,
            watermark=watermark,
            cluster=CLUSTER if args.cluster is None else args.cluster,
            idle_after_us=args.idle_after_us,
        )
    except ValueError as error:
        raise UsageError(in_options(str(error), SETTINGS, OTHERS)) from error


def sensors_of(flows: Sequence[Workflow]) -> list[str]:
    """Return the sensors that scripts name."""
    nodes = (
        node for flow in flows for each in flow.statements for node, _ in walk(each.expression)
    )
    return sorted({node.id for node in nodes if isinstance(node, Sensor)})


def refuse_equal_names(files: Sequence[Path]) -> Sequence[Path]:
    """Return the files if their names differ; scripts are named after their files.

    Raise :class:`UsageError` with one sentence.
    """
    names: dict[str, Path] = {}
    for path in files:
        if path.stem in names:
            pair = f"{str(names[path.stem])!r} and {str(path)!r}"
            raise UsageError(f"two scripts, {pair}, would both be called {path.stem!r}")
        names[path.stem] = path
    return files


def _describe(config: ScriptConfig) -> str:
    flows = config.workflows
    which = flows[0].name if len(flows) == 1 else counted(len(flows), "script")
    late = config.lateness_us
    times = "nothing late" if late is None else f"late after {write_duration(late)}"
    if late is not None and config.watermark != "fixed":
        times += f" at most, by {config.watermark} of {config.cluster}"
    if config.idle_after_us is not None:
        times += f", idle after {write_duration(config.idle_after_us)}"
    usual = config.cap_percent == CAP_PERCENT
    cap = "" if usual else f", cap {config.cap_percent}%"
    return f"{which}, {counted(config.workers, 'worker')}, {times}{cap}"
