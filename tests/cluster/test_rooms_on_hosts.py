"""Every room on three hosts, and four promises, with the commands of a user (tier 4)."""

import re
import sys

import pytest

from straggler.rooms import find_rooms
from tests.cluster.commands import DRIVER, diff, shared_temporary
from tests.harness.hosts import ROOT, Hosts

ROOMS = [room.name for room in find_rooms("all")]


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_agrees_with_the_reference(hosts: Hosts, name: str) -> None:
    (room,) = find_rooms(name)
    done = diff(hosts, name, *room.quick.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 comparison, none broken" in done.stdout


def test_a_command_whose_files_are_not_shared_says_so(hosts: Hosts) -> None:
    command = (sys.executable, "-m", "straggler", "diff", "slack", "--input", "umts")
    done = hosts.run(DRIVER, *command, "--master", hosts.master)
    assert done.returncode == 2, done.stdout + done.stderr
    assert re.findall(r"straggler: .*", done.stderr) == re.findall(r".*TMPDIR.*", done.stderr)
    assert done.stderr.count("TMPDIR") == 1, done.stderr


def test_the_four_promises_hold(hosts: Hosts) -> None:
    options = ("--hypothesis-profile=dev", "-q", "--master", hosts.master)
    done = hosts.run(
        DRIVER,
        *(sys.executable, "-m", "pytest", *options, str(ROOT / "properties" / "test_promises.py")),
        environment=shared_temporary(hosts),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ kills", done.stdout), done.stdout
