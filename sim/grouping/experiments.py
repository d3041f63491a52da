"""Experiments with room ``grouping``, as figures by name: sweeps, and two published claims.

The claims are those of TAG: a tenth more throughput than DAG, and a third less latency than NAG.

Rules of this file:

* All policies of a comparison meet the same arrivals and the same work.
* Throughput is that of a backlog, as a share of the throughput of an ideal fluid. Times are
  measured between windows, unless an experiment says otherwise.
* NAG's weights are not published. Two stand-ins represent it (docs/grouping.md, section 3): every
  statement about NAG is about these.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from model.grouping.machine import Machine
from model.grouping.rules import RULES
from model.grouping.variants import VARIANTS
from sim.grouping.measurables import PolicyFigures, side_by_side
from sim.grouping.room import backlog_of, simulate
from sim.grouping.settings import TIMES, prepare
from sim.kernel.recorder import Summary
from sim.report.drawing import BLACK, BLUE, GREEN, ORANGE, save

SEED = 1
BASE: Mapping[str, str] = {"tuples": "15000", "window_tuples": "2500", "batch_tuples": "500"}
NEAR: Mapping[str, str] = {"tiers": "node"}


def _summaries(
    settings: Mapping[str, str], policies: Iterable[str], seed: int = SEED, *, backlog: bool = True
) -> dict[str, Summary]:
    """Return the summary of each policy on the same arrivals."""
    asked = prepare(settings)
    plan = backlog_of(asked.plan, seed) if backlog else asked.plan
    return {each: simulate(plan, asked.with_policy(each), seed).summary for each in policies}


def _share(summary: Summary) -> float:
    """Return the throughput as a share of the ideal fluid's."""
    return float(summary["served_hz"]) / float(summary["ideal_hz"])


# ----------------------------------------------------------------------------------- all policies

SITUATIONS: Mapping[str, Mapping[str, str]] = {
    "alike": {**BASE, **NEAR, "speeds": "1", "zipf": "1", "load": "backlog"},
    "alike, skewed": {**BASE, **NEAR, "speeds": "1", "zipf": "2", "load": "backlog"},
    "unequal": {**BASE, "tuples": "25000", "load": "0.7"},
}
"""Twice equal instances on near tiers; then the defaults: every second instance five times slower,
all tiers, and Zipf's exponent 1."""


def policies() -> dict[str, tuple[PolicyFigures, ...]]:
    """Return the figures of all policies in every situation."""
    return {name: side_by_side(settings, SEED) for name, settings in SITUATIONS.items()}


# ----------------------------------------------------------------------------------------- sweeps

INSTANCES = (1, 2, 4, 8, 16, 32, 48)
BY_SIZE = ("key", "pkg", "cg", "tag-literal", "tag")
SLOWER = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
BY_SPEED = ("shuffle", "pkg", "dag", "cg", "tag-literal", "tag")


def rho_over_instances() -> Iterator[tuple[str, float]]:
    """Yield mean rho by policy and number of instances; their second half is ten times slower.

    Times are given, so that only routing matters, and ``zipf`` is 0.5: with a larger exponent few
    keys are light, and light keys are those that uniform candidates treat badly.
    """
    for n in INSTANCES:
        window = max(2_000, 200 * n)
        settings = {
            **NEAR,
            "instances": str(n),
            "speeds": ",".join(["1"] * (n - n // 2) + ["0.1"] * (n // 2)),
            "tuples": str(3 * window),
            "window_tuples": str(window),
            "batch_tuples": str(window),
            "zipf": "0.5",
            "keys": "5000",
            "times": "given",
            "queue_limit": "20",
        }
        found = [_summaries(settings, BY_SIZE, SEED + each) for each in range(2)]
        for policy in BY_SIZE:
            yield f"rho, n {n}: {policy}", fmean(float(each[policy]["mean_rho"]) for each in found)


def throughput_over_speeds() -> Iterator[tuple[str, float]]:
    """Yield the share of the ideal, by policy and by the slowness of every second instance."""
    for slower in SLOWER:
        settings = {**BASE, **NEAR, "speeds": f"1,{1 / slower}", "zipf": "0.5"}
        for policy, summary in _summaries(settings, BY_SPEED).items():
            yield f"share, {slower:g}x: {policy}", _share(summary)


# ---------------------------------------------------------------------------- two published claims

ALPHAS = (0.5, 0.1, 0.0)
EXPONENTS = (0.5, 1.0, 1.5)
SPREADS = (1.0, 1.1, 1.5)
"""Mean speed divided by the least speed."""


def tag_against_dag() -> Iterator[tuple[str, float]]:
    """Yield the throughput of ``tag`` over ``dag``, by skew, speeds and ``alpha`` of ``dag``."""
    for spread in SPREADS:
        # For speeds 1 and x, the mean divided by the least is (1 + x) / (2 x).
        speeds = f"1,{1 / (2 * spread - 1)}"
        for exponent in EXPONENTS:
            settings = {**BASE, **NEAR, "speeds": speeds, "zipf": str(exponent)}
            tag = _share(_summaries(settings, ["tag"])["tag"])
            for alpha in ALPHAS:
                dag = _share(_summaries({**settings, "alpha": str(alpha)}, ["dag"])["dag"])
                yield f"tag/dag, spread {spread:g}, zipf {exponent:g}, alpha {alpha:g}", tag / dag


LOADS = (0.3, 0.5, 0.6, 0.8)
STAND_INS = ("nag-static", "nag-dynamic")
PLACES: Mapping[str, Mapping[str, str]] = {
    "near, alike": {**NEAR, "speeds": "1"},
    "near, unequal": {**NEAR, "speeds": "1,0.5"},
    "all tiers, alike": {"speeds": "1"},
    "all tiers, unequal": {"speeds": "1,0.5"},
}


def tag_against_nag() -> Iterator[tuple[str, float | str]]:
    """Yield the relative change of mean latency from ``nag`` to ``tag``, by load and places.

    The value is "keeps up alone" if the throughput of ``nag`` is below the rate of the stream.
    """
    for place, hardware in PLACES.items():
        full = _summaries({**BASE, **hardware}, STAND_INS)
        for load in LOADS:
            settings = {**BASE, **hardware, "load": str(load)}
            found = _summaries(settings, ("tag", *STAND_INS), backlog=False)
            latency_us = {each: float(of["settled_latency_us"]) for each, of in found.items()}
            for each in STAND_INS:
                keeps_up = _share(full[each]) > load
                change = latency_us["tag"] / latency_us[each] - 1
                yield (
                    f"tag/{each}, {place}, load {load:g}",
                    change if keeps_up else "keeps up alone",
                )


TAGS = ("tag-literal", "tag")
WINDOWS = (250, 500, 1_000, 2_000)
SPELL = 2_000
"""Number of tuples for which each of six instances in turn is a straggler."""


def rho_over_windows() -> Iterator[tuple[str, float]]:
    """Yield mean rho with changing stragglers, by window length: times are one window old."""
    for window in WINDOWS:
        settings = {
            **NEAR,
            "scenario": "stragglers",
            "instances": "6",
            "tuples": str(6 * SPELL),
            "window_tuples": str(window),
            "batch_tuples": "250",
            "speeds": "1,0.2",
            "service": "constant",
        }
        for policy, summary in _summaries(settings, TAGS, backlog=False).items():
            yield f"rho, window {window}: {policy}", float(summary["mean_rho"])


SENDERS = (1, 4, 16, 64)


def rho_over_senders() -> Iterator[tuple[str, float]]:
    """Yield mean rho and throughput of ``tag``, by the number of senders. Times are given."""
    for senders in SENDERS:
        settings = {**BASE, **NEAR, "speeds": "1,0.2", "times": "given", "senders": str(senders)}
        summary = _summaries(settings, ["tag"])["tag"]
        yield f"senders {senders}: rho", float(summary["mean_rho"])
        yield f"senders {senders}: share", _share(summary)


def swap() -> Iterator[tuple[str, float]]:
    """Yield mean latency of ``tag`` in the second half of a run, at whose start speeds swap."""
    for times in TIMES:
        settings = {**BASE, **NEAR, "scenario": "swap", "window_tuples": "1000", "times": times}
        summary = _summaries(settings, ["tag"], backlog=False)["tag"]
        yield f"swap, times {times}: latency_us", float(summary["settled_latency_us"])


def propagation() -> Iterator[tuple[str, float]]:
    """Yield the throughput of ``tag`` if its times include or omit the way to the instance.

    Twelve equal instances are spread over all tiers; work is short compared with the longest ways.
    """
    asked = prepare({**BASE, "speeds": "1", "service_us": "80", "queue_limit": "50"})
    plan = backlog_of(asked.plan, SEED)
    with_it = VARIANTS["with_propagation"].rules
    for name, rules in (("left out", RULES), ("included", with_it)):
        machine = partial(Machine, rules=rules)
        summary = simulate(plan, asked.with_policy("tag"), SEED, machine=machine).summary
        yield f"propagation {name}: share", _share(summary)
        yield f"propagation {name}: rho", float(summary["mean_rho"])


def sides(found: Mapping[str, Sequence[PolicyFigures]]) -> Iterator[tuple[str, float | str]]:
    """Yield the figures of :func:`policies`, by name."""
    for situation, row in found.items():
        for side in row:
            figures = side._asdict()
            policy = figures.pop("policy")
            for name, figure in figures.items():
                yield f"{situation}, {policy}: {name}", "-" if figure is None else figure


# -------------------------------------------------------------------------------------- plots


class Sweep(NamedTuple):
    """A figure of several policies over a parameter."""

    title: str
    xlabel: str
    ylabel: str
    at: Sequence[float]
    lines: Mapping[str, Sequence[float]]
    """Values of each policy, one for each of ``at``."""


VIOLET = "#AA4499"
STYLES: Mapping[str, tuple[str, str, str]] = {
    "tag": (BLUE, "-", "o"),
    "tag-literal": (ORANGE, "--", "s"),
    "cg": (GREEN, "-.", "^"),
    "pkg": (BLACK, ":", "D"),
    "dag": (VIOLET, "--", "v"),
    "key": (ORANGE, ":", "x"),
    "shuffle": (GREEN, ":", "+"),
}
"""Colour, line and mark of each policy in all figures."""


def plot_sweep(sweep: Sweep, path: Path) -> None:
    """Write a sweep as one SVG, with a logarithmic x axis."""
    save(draw_sweep, (sweep,), path)


def draw_sweep(sweep: Sweep) -> Figure:
    """Return the figure that :func:`plot_sweep` writes."""
    figure = Figure(figsize=(8.0, 4.0), layout="constrained", facecolor="white")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    axes.set_title(sweep.title)
    axes.set_xlabel(sweep.xlabel)
    axes.set_ylabel(sweep.ylabel)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(list(sweep.at)))
    axes.xaxis.set_major_formatter(FixedFormatter([f"{at:g}" for at in sweep.at]))
    axes.xaxis.set_minor_locator(NullLocator())
    for policy, values in sweep.lines.items():
        colour, style, mark = STYLES[policy]
        axes.plot(
            sweep.at, values, label=policy, color=colour, linestyle=style, marker=mark, ms=4.0
        )
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
