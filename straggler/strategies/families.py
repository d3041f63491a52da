"""Families of clusters: those of the promises are those on which ``test_timing.py`` measures.

Rules of this file:

* ``test_promises.py`` draws each family as it is. The measure of timing draws the same ones, with
  three exceptions. Routers get an eighth of the tuples, in windows an eighth as long. Workers of
  scripts are kept busy by another placement. And the scales :data:`WHOLE` are left out: they need
  all of their tuples, so workers block and shed none, and their speeds do not show.
* Long streams of exchangeable tuples, which show the coverage of first answers, are no family: they
  are as long as their statistics need, and nothing fails in them.
"""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from model.vocabulary import GroupingConfig
from sim.script.host import ScriptTuning
from straggler.strategies import clusters, queries, script
from straggler.strategies.clusters import REGIONS, Shape
from straggler.strategies.packs import ClusterPack, packs
from straggler.strategies.scales import SCALES

SIZES = (2, 4, 8, 16)
"""Numbers of instances."""
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


def routers_of(
    *senders: int, each: int = queries.EACH
) -> Sequence[st.SearchStrategy[GroupingConfig]]:
    """Return strategies for routers of every size in turn."""
    return [queries.balanced_routers(n, senders, each) for n in SIZES]


def light(each: int = queries.EACH) -> Packs:
    """Draw clusters of every size without heavy keys, for one sender."""
    return packs("grouping", 4, routers_of(1, each=each), queries.light_shape, LIGHT)


def shared(each: int = queries.EACH) -> Packs:
    """Draw clusters of every size for several senders."""
    return packs("grouping", 4, routers_of(2, 4, 3, each=each), queries.router_shape, SHARED)


def drifting(each: int = queries.EACH) -> Packs:
    """Draw clusters of the two largest sizes whose keys may drift."""
    return packs("grouping", 2, routers_of(1, each=each)[::-1], queries.drifting_shape, LIGHT)


@st.composite
def scripts(draw: st.DrawFn, sensors: int = 1, tuning: ScriptTuning | None = None) -> ClusterPack:
    """Draw a cluster of every region for three workers with scripts that ask for some sensors."""
    asked = script.configs().filter(lambda each: len(each.asked_for) >= sensors)
    config = replace(draw(asked), workers=3)
    keys = (tuple(sorted(config.asked_for)),)  # No other tuples can be shed.
    shape = Shape(script.SCALE_US, config.workers, events=(40,), keys=keys, tunings=(tuning,))
    cases = [draw(clusters.cases(shape, each)) for each in REGIONS]
    return ClusterPack("script", (config,) * len(cases), tuple(cases))
