"""Timed runs of room ``script`` for the command line: settings, a table of placements, a plot."""

from collections.abc import Mapping
from pathlib import Path

from model.vocabulary.script import Hosted
from properties.errors import UsageError
from properties.rooms import Alternatives, Remark
from properties.script.limits import WORKERS_MAX
from sim.kernel.plan import Plan
from sim.script import DEFAULTS, ScriptRun, from_settings, side_by_side
from sim.script.placements import PLAN
from sim.script.sides import Side
from sim.script.summary import Share
from sim.script.tuning import ScriptTuning

TUPLES_MAX = 200_000
LARGEST = {
    "sensors": 1_000,
    "workflows": 2_000,
    "windows": 100,
    "together": 100,
    "workers": WORKERS_MAX,
    "seconds": 100_000,
    "service_us": 10**9,
    "result_us": 10**9,
    "tuple_bytes": 10**9,
    "result_bytes": 10**9,
}
"""Settings of a timed run."""


def refuse_settings(settings: Mapping[str, str]) -> None:
    """Refuse settings with which a run would not end; others are for the run to judge.

    Raises :class:`UsageError` with one sentence that names the offending value.
    """
    for key, text in settings.items():
        if key in LARGEST and _number(text) > LARGEST[key]:
            raise UsageError(f"{key} is {text}; at most {LARGEST[key]} is allowed")
    given = {**DEFAULTS, **settings}
    rates_hz = [_number(each) for each in str(given["rates_hz"]).split(",")]
    rate_hz = _number(given["sensors"]) * sum(rates_hz) / len(rates_hz)
    if rate_hz * _number(given["seconds"]) > TUPLES_MAX:
        raise UsageError(
            f"seconds is {given['seconds']}: with {rate_hz:,.0f} tuples a second that makes more"
            f" than the {TUPLES_MAX:,} that are simulated at most"
        )


def _number(text: object) -> float:
    """What is not a number is for the run to refuse."""
    try:
        return float(str(text))
    except ValueError:
        return 0.0


def simulate(settings: Mapping[str, str], seed: int) -> ScriptRun:
    """Make one timed run."""
    refuse_settings(settings)
    return from_settings(settings, seed)


SIDES = (
    "placement",
    "came to",
    "sent/h",
    "counted/h",
    "of by-sensor",
    "most/even",
    "busiest",
    "tuple, ms",
    "result, ms",
)


def alternatives(_: ScriptRun, settings: Mapping[str, str], seed: int) -> Alternatives | None:
    """All placements side by side."""
    sides = side_by_side(settings, seed)
    if not sides:
        return None
    remark = (
        "sent/h: tuples and results that the rates predict, counted/h: those of the run; by-sensor"
        " is the baseline; most/even: the largest load by an even share; tuple: from arrival until"
        " served; result: from its stamp until it is there."
    )
    data = tuple(side._asdict() for side in sides)
    return Alternatives(SIDES, tuple(_row(side) for side in sides), data, remark)


def _row(side: Side) -> tuple[str, ...]:
    latencies = [
        "-" if us is None else f"{us / 1e3:,.1f}"
        for us in (side.mean_tuple_latency_us, side.mean_result_latency_us)
    ]
    return (
        side.placement,
        side.way,
        f"{side.predicted_per_hour:,.0f}",
        f"{side.measured_per_hour:,.0f}",
        "-" if side.sent_over_baseline is None else f"{side.sent_over_baseline:.0%}",
        "-" if side.largest_over_even is None else f"{side.largest_over_even:.2f}",
        "-" if side.busiest is None else f"{side.busiest:.0%}",
        *latencies,
    )


def undetermined_steps(plan: Plan) -> tuple[type, ...]:
    """Who is sent which sensor, for another placement than that of docs/script.md."""
    return () if plan.tuned(ScriptTuning()).placement == PLAN else (Hosted,)


def remarks(run: ScriptRun) -> tuple[Remark, ...]:
    """Every worker's part, and that another placement than the specified one is another one."""
    told = "; ".join(_told(share) for share in run.shares)
    found = [Remark("workers", told, {"workers": [share._asdict() for share in run.shares]})]
    placement = run.summary["placement"]
    if placement != PLAN:
        other = (
            f"{placement} is not the placement of docs/script.md: others are sent the sensors, and"
            " who is sent which is not compared"
        )
        found.append(Remark("placement", other, {"placement": placement}))
    return tuple(found)


def _told(share: Share) -> str:
    counted = 0.0 if share.measured_per_hour is None else share.measured_per_hour
    return (
        f"worker {share.worker} is sent {counted:,.0f} tuples an hour"
        f" ({share.predicted_per_hour:,.0f} by the rates) and {share.bytes_received:,} bytes,"
        f" sends {share.results_sent:,} results, is busy {share.busy:.0%}"
    )


def plot(run: ScriptRun, path: Path) -> None:
    """The run over time, as SVG."""
    # Imported here, for matplotlib takes a second that nothing else on the command line needs.
    from sim.script.figures import plot_run

    plot_run(run, path)
