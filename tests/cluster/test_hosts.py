"""Hosts are apart from each other and from this machine; else a test on them says nothing."""

import subprocess
import sys
from pathlib import Path

from tests.harness import hosts as module
from tests.harness.hosts import Hosts

ALONE = """
import socket, sys
from pathlib import Path
print(socket.gethostname(), *sorted(path.name for path in Path("/tmp").glob("own-*")))
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 7077), 2)"


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
