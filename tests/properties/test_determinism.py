"""The same seed gives the same digests, in every room, process and order of hashes.

What is drawn for one thing does not depend on the settings of another: streams are named.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from model.join.variants import explore
from model.vocabulary import SlackConfig, WatermarkConfig
from model.vocabulary.slack import CONTROLS
from model.vocabulary.watermark import READINGS
from sim.scenarios import umts
from sim.slack import simulate as simulate_slack
from sim.watermark import simulate as simulate_watermark
from straggler.rooms import find_room
from straggler.strategies import collect, grouping, join, script, streams, watermark
from tests.sim.test_rooms import RUNS, small

SEED = 12_345
CASES = 4
DRAWN: Mapping[str, Any] = {
    "slack": streams.cases(),
    "watermark": watermark.cases(),
    "join": join.cases(),
    "grouping": grouping.cases(),
    "script": script.cases(),
}
"""Workloads of each room."""
EXPLORED = (("adding",), ("silent",), ("fifo", "no_numbers"))
"""Small scopes of a chain, the last one with a planted bug, to which there is a path."""
SCRIPT = """
import json, sys
from tests.properties.test_determinism import digests
json.dump(digests(), sys.stdout)
"""


def digests() -> dict[str, list[str]]:
    """Return workloads and digests of their traces by room, and what the explorer says."""
    found = {}
    for name, strategy in DRAWN.items():
        room = find_room(name)
        cases = collect(strategy, CASES, SEED)
        found[name] = [json.dumps(case.to_json()) for case in cases]
        for run in (room.reference(), room.in_process()):
            found[name] += [run(case).digest() for case in cases]
    found["timed"] = [small(room, seed).digest for room in RUNS for seed in (1, 2)]
    searches = [explore(*each) for each in EXPLORED]
    found["explored"] = [str((each.unique_states, each.verdicts)) for each in searches]
    return found


def elsewhere(hash_seed: str) -> dict[str, list[str]]:
    """Return the digests that another process computes."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={
            **os.environ,
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def test_one_seed_has_one_digest_whatever_the_process() -> None:
    here = digests()
    for name, found in here.items():
        assert len(set(found)) > CASES // 2, f"the cases of {name} are all alike"
    assert len(set(here["timed"])) == 2 * len(RUNS)
    assert elsewhere("1") == here


def test_settings_of_an_operator_change_no_arrival() -> None:
    plan, times = umts(11, messages=300), (5_000_000, 1_000_000)
    configs = [
        SlackConfig(*times, tasks=2, control=each, fixed_slack_us=200_000) for each in CONTROLS
    ]
    readings = [WatermarkConfig(*times, 8_000_000, reading=each) for each in READINGS]
    runs = [simulate_slack(plan, config, seed=11).workload for config in configs]
    runs += [simulate_watermark(plan, config, 11).workload for config in readings]
    assert len({each.arrivals for each in runs}) == 1
    assert len({run.digest() for run in map(find_room("slack").reference(), runs[:3])}) > 1
