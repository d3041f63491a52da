"""Everything that listens on a host: on an address of that host only, and never without a secret.

The sockets are listed while a task of a chain, or of windows with state, waits: then driver,
executors and their Python processes listen for each other.
"""

import ipaddress
import re
import sys
from typing import NamedTuple

import pytest

from tests.cluster.commands import diff_during, small_join, wait
from tests.harness.hosts import Hosts

OWNERS = {
    "deploy.master.Master": "master",
    "deploy.worker.Worker": "worker",
    "CoarseGrainedExecutorBackend": "executor",
    "deploy.SparkSubmit": "driver in Java",
    "pyspark.daemon": "Python of an executor",
    "tests.harness.host_faults": "driver in Python",
    "http.server": "planted",
}
"""Kind of process, by a part of its command line."""
SECRET = re.compile(r"^spark\.(authenticate\.secret|.*secretKey) (\S+)$", re.MULTILINE)
PAGE = """
import sys, urllib.error, urllib.request
try:
    urllib.request.urlopen(sys.argv[1], timeout=5)
    print("open")
except urllib.error.HTTPError as error:
    print(error.code)
"""


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
    """Return the sockets that others than the host's own network reach, or of unknown owners."""
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


def test_pages_of_master_and_worker_need_a_token(hosts: Hosts) -> None:
    pages = [each for each in listening(hosts) if ipaddress.ip_address(each.address).is_loopback]
    assert {each.owner for each in pages} >= {"master", "worker"}
    for each in pages:
        address = f"http://127.0.0.1:{each.port}/"
        said = hosts.run(each.host, sys.executable, "-c", PAGE, address).stdout
        assert said == "403\n", (each, said)


def test_a_driver_without_the_secret_is_refused(hosts: Hosts) -> None:
    command = (sys.executable, "-m", "straggler.cli", "diff", "grouping", "--input", "tokens")
    stranger = {"TMPDIR": str(hosts.shared), "SPARK_CONF_DIR": str(hosts.shared)}
    before = refusals(hosts)
    driver = hosts.start("host-1", *command, "--master", hosts.master, environment=stranger)
    try:
        wait(lambda: refusals(hosts) > before)
    finally:
        hosts.stop(driver)  # it would try again for a minute


def refusals(hosts: Hosts) -> int:
    """Return how often the master has refused somebody who did not show the secret."""
    return hosts.log_of_master().count("Expected SaslMessage")


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_planted_wildcard_socket_is_found(hosts: Hosts, address: str) -> None:
    module = ("-m", "http.server", "--bind", address, "8000")
    planted = hosts.start("host-2", sys.executable, "-u", *module, folder=hosts.shared)
    try:
        assert planted.stdout is not None
        planted.stdout.readline()
        (found,) = strangers(hosts, listening(hosts))
        assert found[:2] == ("host-2", "planted")
    finally:
        hosts.stop(planted)
