"""Everything that listens on a host does so on an address of that host alone, with a secret.

The sockets are listed while a task of a chain, or of windows with state, waits: then driver,
executors and their Python processes listen for each other.
"""

import ipaddress
import re
from typing import NamedTuple

import pytest

from tests.cluster.commands import diff_during, small_join
from tests.harness.hosts import Hosts

OWNERS = {
    "deploy.master.Master": "master",
    "deploy.worker.Worker": "worker",
    "CoarseGrainedExecutorBackend": "executor",
    "deploy.SparkSubmit": "driver in Java",
    "pyspark.daemon": "Python of an executor",
    "tests.harness.host_faults": "driver in Python",
}
"""Kind of process, by a part of its command line."""
SECRET = re.compile(r"^spark\.(authenticate\.secret|.*secretKey) (\S+)$", re.MULTILINE)


class Socket(NamedTuple):
    """A listening socket of TCP."""

    host: str
    owner: str
    """Kind of the process that listens."""
    address: str
    port: int


def listening(hosts: Hosts) -> list[Socket]:
    """Return every listening socket of all hosts."""
    found = []
    for host in hosts.names:
        for line in hosts.run(host, "ss", "-Hltnp").stdout.splitlines():
            columns = line.split()
            address, _, port = columns[3].rpartition(":")
            number = re.search(r"pid=(\d+)", line)
            owner = "unknown" if number is None else owner_of(hosts, host, number[1])
            plain = address.strip("[]").removeprefix("::ffff:").partition("%")[0]
            found.append(Socket(host, owner, plain, int(port)))
    return found


def owner_of(hosts: Hosts, host: str, number: str) -> str:
    """Return the kind of a process."""
    command = hosts.run(host, "cat", f"/proc/{number}/cmdline").stdout.replace("\0", " ")
    kinds = [kind for part, kind in OWNERS.items() if part in command]
    return kinds[0] if kinds else f"unknown: {command}"


def strangers(hosts: Hosts, sockets: list[Socket]) -> list[Socket]:
    """Return the sockets on other addresses than the host's own, and those of unknown owners."""
    return [
        each
        for each in sockets
        if each.owner.startswith("unknown")
        or each.address not in (hosts.address_of(each.host), *map(str, _loopback(each.address)))
    ]


def _loopback(address: str) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    if address == "*":
        return []
    found = ipaddress.ip_address(address)
    return [found] if found.is_loopback else []


@pytest.mark.parametrize("moment", ["in_epoch", "in_micro_batch"])
def test_nothing_listens_beyond_the_addresses_of_its_host(hosts: Hosts, moment: str) -> None:
    command = (
        small_join(hosts.shared)
        if moment == "in_epoch"
        else "slack --input umts --per task --aggregate sum"
    )
    seen: list[Socket] = []
    commands: list[str] = []

    def look(_host: str) -> None:
        seen.extend(listening(hosts))
        for host in hosts.names:
            commands.append(hosts.run(host, "sh", "-c", "cat /proc/[0-9]*/cmdline").stdout)

    diff_during(hosts, hosts.shared / f"listening {moment}", moment, command, look)
    assert not strangers(hosts, seen)
    owners = {each.owner for each in seen}
    assert {"master", "worker", "executor", "driver in Java"} <= owners, owners
    conf = hosts.run("host-1", "cat", hosts.settings_file).stdout
    secrets = [found[1] for found in SECRET.findall(conf)]
    assert len(secrets) == 2
    assert not [each for each in secrets if any(each in text for text in commands)]
