"""Families of clusters: those of the promises are those on which ``test_timing.py`` measures.

Rules of this file:

* ``test_promises.py`` draws each family as it is. The measure of timing draws the same ones, with
  two exceptions. Routers get an eighth of the tuples, in windows an eighth as long. And the scales
  :data:`WHOLE` are left out: they need all of their tuples, so workers block and shed none, and
  their speeds do not show.
* Long streams of exchangeable tuples show the coverage of first answers. Nothing fails in them, so
  they are measured without the variation of faults.
"""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from model.vocabulary import GroupingConfig, ScriptConfig
from model.vocabulary.script.plan import compile_plan
from straggler.strategies import clusters, queries, script
from straggler.strategies.clusters import REGIONS, Shape
from straggler.strategies.packs import ClusterPack, packs
from straggler.strategies.scales import SCALES

SIZES = (2, 4, 8, 16)
"""Numbers of instances."""
SENDERS = (1, 2, 3, 4)
"""Numbers of senders."""
STRUCK = tuple(region for region in REGIONS if region != "calm")
"""Regions of the clusters of a chain."""
LIGHT = ("late", "bursty", "slow", "calm")
SHARED = ("failing", "late", "lossy", "slow")
"""Regions of the clusters of each size."""

WHOLE = ("many keys", "full windows")
"""Scales of streams of which no tuple is shed."""
TIMED = tuple(scale for scale in SCALES if scale not in WHOLE)
"""Scales of streams on which speeds show."""

Packs = st.SearchStrategy[ClusterPack]

CHAINS: Packs = packs("join", 6, queries.join_queries(), queries.chain_shape, STRUCK)
"""Clusters of a chain, which follows the load of each of them."""


def slack(scales: Sequence[str] = tuple(SCALES)) -> Packs:
    """Draw a cluster of every region, and of every scale in turn."""
    asked = queries.corrected_queries()
    return packs("slack", len(REGIONS), asked, queries.windowed_shape, scales=scales)


def watermark(scales: Sequence[str] = tuple(SCALES)) -> Packs:
    """Draw a cluster of every region, and of every scale in turn."""
    asked = queries.corrected_watermarks()
    return packs("watermark", len(REGIONS), asked, queries.windowed_shape, scales=scales)


def covered(share: float | None = None, control: str = "conformal") -> Packs:
    """Draw two clusters for a query that asks for a share of its tuples, or for a quality."""
    asked = queries.coverage_queries(share, control)
    return packs("slack", 2, asked, queries.windowed_shape, ("late", "bursty"))


@st.composite
def with_a_long_stream(
    draw: st.DrawFn, share: float | None = None, control: str = "conformal"
) -> ClusterPack:
    """Draw clusters for one query, the last of them with a long stream of exchangeable tuples."""
    pack = draw(covered(share, control))
    long = draw(queries.exchangeable_cases(pack.configs[0]))
    return ClusterPack("slack", (*pack.configs, pack.configs[0]), (*pack.cases, long))


def long_streams(share: float) -> Packs:
    """Draw a long stream of exchangeable tuples alone."""
    packs = with_a_long_stream(share)
    return packs.map(lambda pack: ClusterPack("slack", pack.configs[-1:], pack.cases[-1:]))


def alone(each: int) -> Sequence[st.SearchStrategy[GroupingConfig]]:
    """Return strategies for routers of every size in turn, for one sender."""
    return [queries.balanced_routers(n, [1], each) for n in SIZES]


def light(each: int = queries.EACH) -> Packs:
    """Draw clusters of every size without heavy keys, for one sender."""
    return packs("grouping", 4, alone(each), queries.light_shape, LIGHT)


def shared(each: int = queries.EACH) -> Packs:
    """Draw clusters of every size for two to four senders, each number of them in turn."""
    return st.sampled_from([0, 1, 2]).flatmap(
        lambda turn: packs(
            "grouping",
            4,
            [queries.balanced_routers(n, [2 + (i + turn) % 3], each) for i, n in enumerate(SIZES)],
            queries.router_shape,
            SHARED,
        )
    )


def drifting(each: int = queries.EACH) -> Packs:
    """Draw clusters of the two largest sizes whose keys may drift."""
    return packs("grouping", 2, alone(each)[::-1], queries.drifting_shape, LIGHT)


def _sends_results(config: ScriptConfig) -> bool:
    plan = compile_plan(config)
    return any(plan.share(worker).sent for worker in range(config.workers))


@st.composite
def scripts(draw: st.DrawFn, sensors: int = 1) -> ClusterPack:
    """Draw a cluster of every region for three workers with scripts that ask for some sensors.

    If they ask for several, a worker has to send results to another one.
    """
    asked = script.configs().filter(lambda each: len(each.asked_for) >= sensors)
    placed = asked.map(lambda each: replace(each, workers=3))
    config = draw(placed if sensors == 1 else placed.filter(_sends_results))
    keys = (tuple(sorted(config.asked_for)),)  # No other tuples can be shed.
    shape = Shape(script.SCALE_US, config.workers, events=(40,), keys=keys)
    cases = [draw(clusters.cases(shape, each)) for each in REGIONS]
    return ClusterPack("script", (config,) * len(cases), tuple(cases))
