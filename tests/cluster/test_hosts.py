"""Hosts are apart from each other and from this machine, and nothing is left of them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.harness import hosts as module
from tests.harness.hosts import ROOT, Hosts
from tests.harness.namespaces import GROUP, Control, HostProblem, Link, can_delay

ALONE = """
import socket, sys
from pathlib import Path
print(socket.gethostname(), *sorted(path.name for path in Path("/tmp").glob("own-*")))
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 7077), 2)"
MAKE = """
import signal, sys, time
from pathlib import Path
from tests.harness import hosts
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
running = hosts.Hosts(Path(sys.argv[1]) / "hosts", hosts.Link(), 1, {}, group=sys.argv[2])
for name in hosts.NAMES:
    running._boot(name)
    running.start(name, "sleep", sys.argv[3])
print("ready", flush=True)
try:
    time.sleep(600)
finally:
    running.close()
"""


def processes_of(mark: str) -> list[int]:
    """Return the processes of this machine, those of hosts included, with a word in a command."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark in path.read_text(encoding="utf-8").split("\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_a_host_has_its_own_name_and_folders(hosts: Hosts) -> None:
    for name in hosts.names:
        hosts.run(name, "touch", f"own-{name}", folder=Path("/tmp"))
        (hosts.shared / f"from-{name}").touch()
    for name in hosts.names:
        assert hosts.run(name, sys.executable, "-c", ALONE).stdout == f"{name} own-{name}\n"
        assert "from-host-3" in hosts.run(name, "ls", str(hosts.shared)).stdout


def test_a_link_that_is_cut_carries_nothing_until_it_is_mended(hosts: Hosts) -> None:
    command = (sys.executable, "-c", CONNECT, "host-1")
    assert hosts.run("host-3", *command).returncode == 0
    hosts.cut("host-3")
    assert hosts.run("host-3", *command).returncode == 1
    hosts.mend("host-3")
    assert hosts.run("host-3", *command).returncode == 0


def test_this_machine_is_not_in_the_network_of_the_hosts(hosts: Hosts) -> None:
    links, addresses = (
        subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout
        for words in (["link"], ["address"])
    )
    assert "switch" not in links
    assert module.NETWORK in hosts.run("host-1", "ip", "address").stdout
    assert module.NETWORK not in addresses


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_hosts_whose_maker_ends(tmp_path: Path, ending: signal.Signals) -> None:
    mark = f"9{os.getpid()}{ending:02d}"  # seconds of a sleep, and nothing else on this machine
    group = f"{GROUP}-{mark}"
    maker = subprocess.Popen(
        [sys.executable, "-c", MAKE, str(tmp_path), group, mark],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert maker.stdout is not None
    assert maker.stdout.readline() == "ready\n"
    assert len(processes_of(mark)) > len(module.NAMES)
    maker.send_signal(ending)
    maker.communicate(timeout=60)
    ends_s = time.monotonic() + 60
    while processes_of(mark) and time.monotonic() < ends_s:
        time.sleep(0.05)
    assert not processes_of(mark)
    control = Control(group)  # the next start removes the control groups of a maker that was killed
    control.remove()
    assert not list(Path("/sys/fs/cgroup").glob(f"*/{group}"))


def test_a_delay_that_the_kernel_lacks_is_refused(tmp_path: Path) -> None:
    if can_delay():
        pytest.skip("this kernel can delay packets")
    with (
        pytest.raises(HostProblem, match="5 ms needs netem"),
        module.three_hosts(tmp_path, Link(delay_ms=5)),
    ):
        pass
