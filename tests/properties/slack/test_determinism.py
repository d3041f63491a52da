"""The same seed gives the same digests, in two processes and under two hash seeds."""

import json
import os
import subprocess
import sys

from properties.stream_packs import collect
from straggler.rooms import find_room
from straggler.strategies.streams import cases, timed_cases

SEED = 12_345
CASES = 25

SCRIPT = """
import json, sys
from tests.properties.slack.test_determinism import digests
json.dump(digests(), sys.stdout)
"""


def digests() -> dict[str, list[str]]:
    """Return digests of workloads, of their traces by model and operator, and of timed runs."""
    from tests.properties.slack.test_sim import run

    slack = find_room("slack")
    drawn = collect(cases(), CASES, SEED)
    return {
        "workloads": [json.dumps(case.to_json()) for case in drawn],
        "model": [slack.reference()(case).digest() for case in drawn],
        "operator": [slack.in_process(case).digest() for case in drawn],
        "timed": [run(case).digest for case in collect(timed_cases(), CASES, SEED)],
    }


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
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def test_one_seed_has_one_digest_whatever_the_process() -> None:
    here = digests()
    assert len(set(here["model"])) > CASES // 2, "the cases are all alike"
    assert elsewhere("0") == here
    assert elsewhere("1") == here
