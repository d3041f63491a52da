"""Hosts and links that fail in the middle of a job: answers stay exact (tier 4).

A task waits at the moment of the fault until the fault has happened.
"""

import time

import pytest

from tests.cluster.commands import SLOTS, diff_during, small_join
from tests.harness.hosts import Hosts

SLACK = "slack --input umts --per task --aggregate sum"
KILLS = (
    ("in_routing", "grouping --input tokens --policy key"),
    ("in_micro_batch", "script --input weather"),
    ("in_micro_batch", SLACK),
    ("in_correction", SLACK),
)
"""Moments at which a host is killed, and the comparisons in which it is."""
CUT_S = 5


@pytest.fixture
def chain(hosts: Hosts) -> str:
    """Return a comparison of a chain."""
    return small_join(hosts.shared)


def test_pairs_are_exact_though_a_host_is_killed_in_an_epoch(hosts: Hosts, chain: str) -> None:
    diff_during(hosts, hosts.shared / "killed", "in_epoch", chain, hosts.kill)


@pytest.mark.parametrize(("moment", "comparison"), KILLS)
def test_answers_are_exact_though_a_host_is_killed(
    hosts: Hosts, moment: str, comparison: str
) -> None:
    room = comparison.split()[0]
    diff_during(hosts, hosts.shared / f"{moment}-{room}", moment, comparison, hosts.kill)


def test_pairs_are_exact_though_a_link_is_cut_in_an_epoch(hosts: Hosts, chain: str) -> None:
    sent_again: list[int] = []

    def cut(host: str) -> None:
        before = retransmissions(hosts, host)
        hosts.cut(host)
        (hosts.shared / "cut" / "over").touch()
        time.sleep(CUT_S)
        hosts.mend(host)
        sent_again.append(retransmissions(hosts, host) - before)

    diff_during(hosts, hosts.shared / "cut", "in_epoch", chain, cut)
    assert sent_again[0] > 0, "nothing was sent while the link was cut"


def test_pairs_are_exact_though_links_carry_1_mbit(hosts: Hosts, chain: str) -> None:
    for host in hosts.names:
        hosts.shape(host, mbit=1)
    # More workers than one host has slots: else the chain may live on one host, whose neighbour
    # was slow to come, and nothing passes the other link.
    chain = f"{chain} --workers {SLOTS + 1}"
    diff_during(hosts, hosts.shared / "narrow", "in_epoch", chain, lambda _host: None)
    waits = {host: hosts.waits_of_link(host) for host in hosts.names}
    assert all(waits.values()), f"no packet had to wait: {waits}"


def retransmissions(hosts: Hosts, host: str) -> int:
    """Return the number of TCP segments that a host has sent again."""
    names, values = (
        line.split()
        for line in hosts.run(host, "cat", "/proc/net/snmp").stdout.splitlines()
        if line.startswith("Tcp:")
    )
    return int(dict(zip(names, values, strict=True))["RetransSegs"])
