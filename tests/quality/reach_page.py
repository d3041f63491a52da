"""The page of what the drawn cases reach on real Spark, made from the record of it."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from model.vocabulary.slack import CONTROLS
from model.vocabulary.windows import AGGREGATES
from straggler.cli.render import markdown
from straggler.rooms import sort_names
from straggler.strategies.streams import requirements
from tests.harness.reach import SHARES, Reach, Rule, method_of, read
from tests.harness.reached_cases import LARGE_PARTIAL, OPERATIONS, PARTIAL

RECORD = Path(__file__).resolve().parents[2] / "docs" / "reach.json"
RULES = (("sum", "normal"), ("avg", "normal"), ("sum", "permutation"), ("avg", "rigorous"))
"""Aggregates and methods for which a large window has to require a part."""
ALLOWED = tuple(
    dict.fromkeys(
        Rule(name, method_of(each.method, each.lambda_thr), each.sampling, control)
        for name in AGGREGATES
        for each in requirements(name)
        for control in CONTROLS
    )
)
"""Rules that a query may have; some window of each has to require a part."""
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "slack": (
        "late pairs",
        "mixed tuples",
        "corrections of several windows",
        "misses",
        "redelivered tuples",
        "rejected arrivals",
        "on a boundary",
        PARTIAL,
        LARGE_PARTIAL,
    ),
    "join": (
        "forwarded blocks",
        "copies met",
        "on a boundary",
        "changes to more workers",
        "changes to fewer workers",
        "results across a change of workers",
        "shed arrivals",
    ),
    "grouping": (
        "single instances",
        "several senders",
        "latencies",
        "redeliveries",
        "rejected arrivals",
        "full summaries",
        "heavy keys with more than 2 candidates",
        "keys at several instances",
        "rebalances that changed the table",
        "windows with new times",
    ),
    "watermark": (
        "late pairs",
        "corrections",
        "redelivered tuples",
        "rejected arrivals",
        "reversed clusters",
        "held watermarks",
        "passings",
        "insertions",
    ),
    "script": (
        "shared computations",
        "streams with several windows",
        "panes narrower than a slide",
        "streams cut at edges",
        "windows with gaps",
        "slides that do not divide",
        "windows over results",
        "empty windows",
        "parts of a union twice",
        "updates at one time",
        "undefined times",
        "values that are not finite",
        "redelivered tuples",
        "on a boundary",
        "late arrivals by disorder",
        "arrivals waited for by disorder",
        "streams known in part",
        "sensors at several workers",
        "components for several workers",
        *OPERATIONS.values(),
    ),
}
"""Regions that Spark has to have met, by room."""
_HEAD = """\
# Reach

*Written by `make docs` from `reach.json`; a test checks that it is current.*

After reading this page you know which cases the generated tests meet on Spark, and how often.

A *region* is a case that is easy to get wrong. Its count is the number of times that it occurred
in Spark's own traces, over all cases that profile `ci` draws with `--long`. A count in bold must
not be 0, or a test of this record fails. *On a boundary* are tuples where a window starts or ends,
and in room `join` pairs exactly one window apart. *Redeliveries* are arrivals of tuples that had
come before; room `grouping` counts each of them.

Only these tests are in the record:

{tests}

`python -m pytest -p tests.harness.reach --record-reach docs/reach.json --long
--hypothesis-profile=ci` with these tests records anew. Chains depend on time, so their blocks
differ from run to run.
"""
TESTS = (
    "tests/properties/slack/test_spark.py",
    "tests/properties/join/test_spark.py",
    "tests/properties/join/test_load_on_spark.py",
    "tests/properties/grouping/test_spark.py",
    "tests/properties/watermark/test_spark.py",
    "tests/properties/script/test_spark.py",
    "properties/test_promises.py::test_every_pair_is_joined_exactly_once",
    "properties/test_promises.py::test_imbalance_does_not_grow_with_instances",
    "properties/test_promises.py::test_first_answers_contain_the_requested_share",
    "properties/test_promises.py::test_every_answer_ends_exact",
)
"""Tests whose runs on Spark are in the record."""
_SIZES = """\
The tuples of a window: {sizes}.
"""
_RULES = """\
What a first answer has to contain follows from these settings. *Part* are windows in which it may
leave tuples out, *large* those among them with at least 100 tuples. Method `lambda_thr` is a
required coverage that the query gives; sampling does not matter to it. A query may have {allowed}
combinations. A test of this record fails if no window of one of them requires a part.
"""


def page(record: Path = RECORD) -> str:
    """Return the page: for each room its regions, sizes of windows, and rules."""
    found = read(record)
    parts = [_HEAD.format(tests="\n".join(f"- `{test}`" for test in TESTS))]
    for room in sort_names(set(found)):
        reach = found[room]
        parts += [f"## `{room}`\n", f"{reach.cases:,} cases ran on Spark.\n"]
        parts += [_regions(room, reach), ""]
        if reach.window_tuples:
            parts += [_SIZES.format(sizes=", ".join(_sizes(reach)))]
        if reach.rules:
            parts += [_RULES.format(allowed=len(ALLOWED)), _rules(reach), ""]
    return "\n".join(parts).rstrip() + "\n"


def never_reached(found: Mapping[str, Reach]) -> list[str]:
    """Return what Spark has to have met and never met, as ``room: region``."""
    missing = [
        f"{room}: {region}"
        for room, regions in REQUIRED.items()
        for region in regions
        if room not in found or not found[room].regions.get(region)
    ]
    rules = found["slack"].rules if "slack" in found else ()
    met = {rule for rule, counts in rules if counts[PARTIAL]}
    large = {rule[:2] for rule, counts in rules if counts[LARGE_PARTIAL]}
    missing += [f"slack: {' '.join(rule)}, {PARTIAL}" for rule in ALLOWED if rule not in met]
    missing += [f"slack: {' '.join(pair)}, {LARGE_PARTIAL}" for pair in RULES if pair not in large]
    return missing


def _regions(room: str, reach: Reach) -> str:
    required = REQUIRED.get(room, ())
    rows = [
        [name, f"**{count:,}**" if name in required else f"{count:,}"]
        for name, count in reach.regions.items()
    ]
    return markdown({"region": "", "count": ""}, rows)


def _sizes(reach: Reach) -> Iterable[str]:
    """Yield the size of a window at each recorded share of all windows."""
    names = {0.0: "least", 0.5: "median", 1.0: "most"}
    for share, tuples in zip(SHARES, reach.window_tuples, strict=True):
        yield f"{names.get(share, f'{share:.0%}')} {tuples:,}"


def _rules(reach: Reach) -> str:
    header = ("aggregate", "method", "sampling", "control", "cases", "windows", "part", "large")
    columns = ("cases", "judged windows", PARTIAL, LARGE_PARTIAL)
    rows = [[*rule, *(f"{counts[name]:,}" for name in columns)] for rule, counts in reach.rules]
    return markdown(dict.fromkeys(header, ""), rows)
