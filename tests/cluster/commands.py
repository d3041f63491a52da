"""Commands of ``straggler`` on the first host, whose files are in the shared folder."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.harness.host_faults import OVER, STRUCK
from tests.harness.hosts import Hosts

DRIVER = "host-1"
SLOTS = 4
"""Task slots of each of the two hosts that have a worker."""
PATIENCE_S = 240.0
STREAM_TUPLES = 400
"""Number of tuples of each stream of :func:`small_join`."""


def small_join(folder: Path) -> str:
    """Write two streams of a few hundred tuples; return the arguments that join them."""
    random = Random(7)
    files = []
    for name in ("r", "s"):
        lines = ["event_time,key,value"]
        for number in range(STREAM_TUPLES):
            time_us = number * 10_000 - random.randrange(100_000)
            lines.append(f"{time_us},k{random.randrange(20)},{random.randrange(100)}")
        file = folder / f"{name}.csv"
        file.write_text("\n".join(lines) + "\n", encoding="ascii")
        files += [f"--{name}", str(file)]
    return " ".join(["join", *files, "--window", "1s", "--lateness", "50ms", "--batches", "4"])


def shared_temporary(hosts: Hosts) -> dict[str, str]:
    """Return the environment with which commands keep their files where workers find them."""
    return {"TMPDIR": str(hosts.shared)}


def diff(hosts: Hosts, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run ``straggler diff`` on the cluster."""
    command = (sys.executable, "-m", "straggler", "diff", *arguments)
    return hosts.run(
        DRIVER, *command, "--master", hosts.master, environment=shared_temporary(hosts)
    )


def diff_during(
    hosts: Hosts, folder: Path, moment: str, arguments: str, act: Callable[[str], None]
) -> dict[str, Any]:
    """Run ``straggler diff``, act when a task reaches the moment, and return the judgement.

    ``act`` gets the host of the task, which waits meanwhile. The command holds, or the test fails.
    """
    folder.mkdir()
    verdicts = folder / "verdicts.json"
    options = [
        *arguments.split(),
        "--reference",
        "model",
        "--master",
        hosts.master,
        "--json",
        str(verdicts),
    ]
    module = (sys.executable, "-m", "tests.harness.host_faults", str(folder), moment)
    command = (*module, "diff", *options)
    process = hosts.start(DRIVER, *command, environment=shared_temporary(hosts))
    try:
        wait(lambda: (folder / STRUCK).exists() or process.poll() is not None)
        if process.poll() is None:
            act((folder / STRUCK).read_text(encoding="ascii"))
            (folder / OVER).touch()
        said = process.communicate(timeout=PATIENCE_S)
    finally:
        hosts.stop(process)
    assert (folder / OVER).exists(), f"no task reached {moment}: {said}"
    assert process.returncode == 0, said
    (found,) = json.loads(verdicts.read_text(encoding="utf-8"))
    assert found["verdict"] == "holds", found
    assert isinstance(found, dict)
    return found


def wait(is_done: Callable[[], bool]) -> None:
    """Wait for a condition."""
    ends_s = time.monotonic() + PATIENCE_S
    while not is_done():
        assert time.monotonic() < ends_s, "nothing has happened"
        time.sleep(0.05)
