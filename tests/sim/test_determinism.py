"""The same seed gives the same digest: twice in a process, and under two hash seeds."""

import os
import subprocess
import sys
from pathlib import Path

from sim.kernel.log import simulate_arrivals
from sim.scenarios import umts
from tests.sim.test_arrivals import STORMY

SCRIPT = "from tests.sim.test_determinism import digests; print(*digests())"


def digests() -> list[str]:
    umts_run = simulate_arrivals(umts(3, messages=200), 3)
    return [simulate_arrivals(STORMY, 3).digest(), umts_run.digest()]


def test_twice_in_a_process() -> None:
    assert digests() == digests()
    assert simulate_arrivals(STORMY, 3).digest() != simulate_arrivals(STORMY, 4).digest()


def test_under_two_hash_seeds() -> None:
    root = Path(__file__).parents[2]
    for hash_seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)}
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            check=True,
            cwd=root,
            env=environment,
            text=True,
            timeout=60,
        )
        assert run.stdout.split() == digests()
