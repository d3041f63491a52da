"""The case study of a chain that follows its load, simulated and on Spark, as ``join-load.svg``.

The rate of both streams doubles, rises to three times in a burst, and halves twice. The chain has
4 to 8 workers, and decides on workers, blocks and shedding after every epoch by the rules of
docs/join.md, section 14. Comparisons cost emulated time, as in ``join_scaling``, so that eight
workers work at the same time on few cores.

Both chains get the same arrivals. On Spark an epoch begins at a multiple of its interval with all
that has come, as a stream does; a simulated chain takes arrivals as they come and cuts its epochs
at these multiples. So a tuple waits for the next epoch only on Spark. *Latency* is the time from an
arrival to the commit of its epoch, shed ones included.

Guard: on Spark the pairs are those of all tuples that were not shed, each once.
"""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from benchmarks.games import MEASURED
from model.join.control import utilisation
from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import REASON_SHED, STREAMS, Equi
from model.vocabulary.join_load import LoadRules, Measured
from sim.join import simulate
from sim.join.tuning import ChainTuning, Control, Costs
from sim.kernel.plan import replay
from sim.kernel.trigger import Every
from spark_impl.join import load, rejected
from spark_impl.join.chain import Chain
from spark_impl.join.task import Options
from spark_impl.runtime.session import session

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SECOND_US = 1_000_000
RATE = 100
"""Tuples/s of both streams at the start.

Eight workers on two cores have time for the messages of so many tuples, also in blocks of one."""
PHASES = {
    "start": (24, 1),
    "doubled": (48, 2),
    "burst": (20, 3),
    "after the burst": (24, 2),
    "halved": (48, 1),
}
"""Seconds and rate, in units of ``RATE``."""
INTERVAL_S, WINDOW_S, KEYS = 4, 4, 57
COMPARISON_US = 2_000
EPOCH_COST_US = 700_000
"""Simulated pause after an epoch: about what the start of a stage takes on Spark."""
PACE_US = WINDOW_S * SECOND_US // 16
"""Lead of a simulated stream: that on Spark, with 8 workers."""
START_US = 1_700_000_000_000_000
RULES = LoadRules(
    least=4,
    most=8,
    tau0=0.13,
    tau1=0.45,
    tau2=0.45,
    out_after_us=4 * SECOND_US,
    in_after_us=16 * SECOND_US,
    capacity=100,
    blocks="adaptive",
    shed="linear",
    block_size=8,
)
CONFIG = JoinConfig(
    WINDOW_S * SECOND_US,
    (("join", Equi("key")),),
    workers=RULES.least,
    block_size=RULES.block_size,
    credit=51,
    lateness_us=0,
)


class Epoch(NamedTuple):
    """One epoch; shares are percentages."""

    end_s: float
    workers: int
    utilisation: float
    block_size: int
    shed: float
    """Share of the epoch's arrivals that was shed."""
    latency_s: float
    """Mean time from an arrival to the commit."""


def measure() -> dict[str, float]:
    """Return figures; write the picture of the curves."""
    given = arrivals()
    found = {"simulated": simulated(given), "Spark": on_spark(given)}
    draw(found)
    return {
        f"{phase}: {figure}, {who}": value
        for phase in PHASES
        for who, epochs in found.items()
        for figure, value in figures_of(epochs, phase).items()
    }


def figures_of(epochs: Sequence[Epoch], phase: str) -> dict[str, float]:
    """Return the figures of the epochs whose arrivals came in a phase, on average.

    There are none if the chain was so far behind that one epoch took the whole phase.
    """
    ends_s = dict(zip(PHASES, accumulate(seconds for seconds, _ in PHASES.values()), strict=True))
    begin_s = ends_s[phase] - PHASES[phase][0]
    own = [each for each in epochs if begin_s < each.end_s - each.latency_s <= ends_s[phase]]
    if not own:
        return {}
    return {
        "workers at the end": own[-1].workers,
        "mean utilisation, %": fmean(each.utilisation for each in own),
        "mean share shed, %": fmean(each.shed for each in own),
        "mean latency, s": fmean(each.latency_s for each in own),
    }


def arrivals() -> pa.Table:
    """Return the arrivals of both streams, which take turns; they arrive at their event times."""
    gaps_us = [
        np.full(round(seconds * RATE * times), SECOND_US / (RATE * times))
        for seconds, times in PHASES.values()
    ]
    at_us = np.concatenate([[0.0], np.cumsum(np.concatenate(gaps_us))[:-1]]).astype(np.int64)
    seq = np.arange(len(at_us))
    keys = np.random.default_rng(1).integers(KEYS, size=len(seq))
    return pa.table(
        {
            "stream": pa.array(STREAMS).take(pa.array(seq % 2)),
            "seq": seq,
            "source_id": seq // 2,
            "key": pa.array([f"key-{each}" for each in range(KEYS)]).take(pa.array(keys)),
            "event_time_us": START_US + at_us,
            "value": np.zeros(len(seq)),
        }
    )


def simulated(given: pa.Table) -> list[Epoch]:
    """Return the epochs of a simulated chain."""
    events = [
        Event(row["seq"], row["source_id"], row["key"], at_us, row["value"], at_us, row["stream"])
        for row in given.to_pylist()
        for at_us in (row["event_time_us"],)
    ]
    tuning = ChainTuning(
        Costs(comparison_us=COMPARISON_US),
        Control(rules=RULES),
        pace_us=PACE_US,
        intake_tuples=RULES.block_size,
        commit_us=EPOCH_COST_US,
    )
    plan = replace(
        replay(events, "case study"), tuning=tuning, trigger=Every(INTERVAL_S * SECOND_US)
    )
    run = simulate(plan, CONFIG, 1)
    measured = [each.measured for each in run.concluded]
    blocks = [RULES.block_size, *(each.decision.block_size for each in run.concluded)]
    ends_s = accumulate(each.elapsed_us / SECOND_US for each in measured)
    return epochs_of(given, list(ends_s), measured, blocks)


def on_spark(given: pa.Table) -> list[Epoch]:
    """Return the epochs of a chain on Spark, which gets the arrivals as time goes by."""
    at_s = seconds_of(given)
    blocks, ends_s = [RULES.block_size], list[float]()
    with session("local[8]") as spark, tempfile.TemporaryDirectory(prefix="straggler-") as place:
        store = Path(place) / "chain"
        options = Options(comparison_us=COMPARISON_US)
        chain = Chain(spark, CONFIG, store, options=options, load=RULES)
        pairs = taken = 0
        begun = time.monotonic()
        while taken < len(at_s):
            passed_s = time.monotonic() - begun
            time.sleep(INTERVAL_S - passed_s % INTERVAL_S)
            last = int(np.searchsorted(at_s, time.monotonic() - begun))
            done = chain.advance(spark.createDataFrame(given.slice(taken, last - taken)))
            ends_s.append(time.monotonic() - begun)
            taken = last
            pairs += sum(sum(each.matches.values()) for each in done)
            following = chain.store.at().last()
            assert following is not None
            assert following.load is not None
            blocks.append(following.load.decision.block_size)
        pairs += sum(sum(each.matches.values()) for each in chain.advance(None))
        measured = [each.measured for each in load(store)]
        gone = {
            row.seq
            for row in rejected(spark, store)
            .where(F.col("reason") == REASON_SHED)
            .select("seq")
            .collect()
        }
    assert pairs == pairs_of(given, gone), "some pairs are missing or come twice"
    return epochs_of(given, ends_s, measured, blocks)


def seconds_of(given: pa.Table) -> NDArray[np.float64]:
    """Return when arrivals come, in seconds since the start."""
    at_us = given.column("event_time_us").to_numpy() - START_US
    return np.asarray(at_us / SECOND_US, dtype=np.float64)


def epochs_of(
    given: pa.Table, ends_s: Sequence[float], measured: Sequence[Measured], blocks: Sequence[int]
) -> list[Epoch]:
    """Return epochs, which took the arrivals in order."""
    counts = [each.offered for each in measured]
    own = np.split(seconds_of(given), np.cumsum(counts)[:-1])
    return [
        Epoch(
            end_s,
            len(each.busy_us),
            100 * utilisation(each),
            zeta,
            100 * each.shed / max(1, each.offered),
            end_s - float(np.mean(at_s)),
        )
        for end_s, each, zeta, at_s in zip(ends_s, measured, blocks, own, strict=False)
    ]


def pairs_of(given: pa.Table, gone: set[int]) -> int:
    """Return the number of pairs of the arrivals that were not shed."""
    kept = given.to_pandas()
    kept = kept[~kept["seq"].isin(gone)]
    pairs = 0
    for _, own in kept.groupby("key"):
        r, s = (own.loc[own["stream"] == name, "event_time_us"].to_numpy() for name in STREAMS)
        window_us = CONFIG.window_us
        first, last = (s.searchsorted(r - window_us), s.searchsorted(r + window_us, "right"))
        pairs += int((last - first).sum())
    return pairs


def draw(found: Mapping[str, Sequence[Epoch]]) -> None:
    """Draw the curves of both chains."""
    from sim.report.drawing import save

    MEASURED.mkdir(exist_ok=True)
    save(picture, (found,), MEASURED / "join-load.svg")


def picture(found: Mapping[str, Sequence[Epoch]]) -> "Figure":
    """Return the figure that :func:`draw` writes."""
    from sim.report.drawing import BLUE, GREY, ORANGE, panels

    title = "A chain that follows its load: the same arrivals, simulated and on Spark"
    figure, (rate, *others) = panels(6, (8.0, 9.5), title, "time since the start (s)")
    ends_s = [0, *accumulate(seconds for seconds, _ in PHASES.values())]
    rates = [RATE * times for _, times in PHASES.values()]
    rate.stairs(rates, ends_s, color=GREY, linewidth=1.3)
    rate.set(title="Arrivals of both streams", ylabel="tuples/s", ylim=(0, None))
    texts = {
        "workers": ("Workers", "workers"),
        "utilisation": ("Utilisation: busy time of the workers, on average", "%"),
        "block_size": ("Largest block", "tuples"),
        "shed": ("Share of arrivals that is shed", "%"),
        "latency_s": ("Mean time from an arrival to the commit of its epoch", "seconds"),
    }
    shapes: Mapping[str, tuple[str, str]] = {"simulated": (ORANGE, "--"), "Spark": (BLUE, "-")}
    value_of: Callable[[Epoch, str], float] = getattr
    for axes, (field, (text, unit)) in zip(others, texts.items(), strict=True):
        axes.set(title=text, ylabel=unit)
        for who, epochs in found.items():
            colour, style = shapes[who]
            axes.plot(
                [each.end_s for each in epochs],
                [value_of(each, field) for each in epochs],
                color=colour,
                linestyle=style,
                marker=".",
                markersize=4,
                label=who,
                drawstyle="steps-pre" if field in ("workers", "block_size") else "default",
            )
        axes.set_ylim(0, None)
    others[0].set_yticks(range(0, RULES.most + 1, 2))
    for limit, name in ((RULES.tau1, "tau1"), (RULES.tau0, "tau0")):
        others[1].axhline(100 * limit, color=GREY, linewidth=0.8, linestyle=":", label=name)
    for axes in others:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
