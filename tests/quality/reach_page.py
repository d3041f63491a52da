"""The page of what the drawn cases reach on real Spark, made from the record of it."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from properties.cli.render import markdown
from properties.rooms import sort_names
from tests.harness.reach import LARGE_PARTIAL, PARTIAL, SHARES, Reach, read

RECORD = Path(__file__).resolve().parents[2] / "docs" / "reach.json"
RULES = (("sum", "normal"), ("avg", "normal"), ("sum", "permutation"), ("avg", "rigorous"))
"""Aggregates and methods for which a large window has to require a part."""
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
}
"""Regions that Spark has to have met, by room."""
_HEAD = """\
# Reach

*Written by `make docs` from `reach.json`; a test checks that it is current.*

After reading this page you know which cases the generated tests meet on Spark, and how often.

A *region* is a case that is easy to get wrong. Its count is the number of times that it occurred
in Spark's own traces, over all drawn cases of profile `ci`. A count in bold must not be 0, or a
test of this record fails. *On a boundary* are tuples where a window starts or ends, and in room
`join` pairs exactly one window apart.

Room `script` is not in the record, nor are other tests than these:

{tests}

`python -m pytest -p tests.harness.reach --record-reach docs/reach.json --hypothesis-profile=ci`
with these tests records anew. Chains depend on time, so their blocks differ from run to run.
"""
TESTS = (
    "properties/slack/test_spark.py",
    "properties/join/test_spark.py",
    "properties/join/test_load_on_spark.py",
    "properties/watermark/test_spark.py",
    "properties/test_promises.py::test_every_pair_is_joined_exactly_once",
    "properties/test_promises.py::test_imbalance_does_not_grow_with_instances",
)
"""Tests whose runs on Spark are in the record."""
_SIZES = """\
The tuples of a window: {sizes}.
"""
_RULES = """\
What a first answer has to contain follows from these settings. *Part* are windows in which it may
leave tuples out, *large* those among them with at least 100 tuples.
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
            parts += [_RULES, _rules(reach), ""]
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
    large = {(rule.aggregate, rule.method) for rule, counts in rules if counts[LARGE_PARTIAL]}
    return missing + [f"slack: {' '.join(rule)}" for rule in RULES if rule not in large]


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
