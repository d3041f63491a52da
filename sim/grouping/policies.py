"""All policies side by side: the same arrivals, the same work, the same instances.

Rules of this file:

* Throughput is that of a backlog, in which senders stand still only where instances do: the most
  that a policy gets out of them. Latency and balance are those of a stream at the load that is
  asked for, which is a share of what a fluid could be worked off with, the same for all policies.
* A policy that gets less out of its instances than the stream brings has no latency: what waits
  grows for as long as the stream goes on.
"""

from collections.abc import Mapping
from typing import NamedTuple

from model.vocabulary.grouping import POLICIES
from model.vocabulary.settings import look_up
from sim.grouping.room import backlog_of, simulate
from sim.grouping.settings import ALL, GroupingRun, prepare
from sim.kernel.plan import Plan


class Side(NamedTuple):
    """A policy beside the others."""

    policy: str
    throughput_hz: float
    share_of_ideal: float
    """Throughput by that of a fluid."""
    mean_latency_us: float | None
    """Of the second half of the tuples; ``None`` where it cannot keep up."""
    p99_latency_us: float | None
    mean_rho: float
    mean_imbalance: float
    instances_a_key: float
    """On average over keys and windows."""


def named(text: str) -> tuple[str, ...]:
    """The policies of a setting: all, none, or names with commas between them.

    Raises ``ValueError`` for a name that there is not.
    """
    if text in ("all", "none"):
        return POLICIES if text == "all" else ()
    known = {policy: policy for policy in POLICIES}
    return tuple([look_up("policies", name.strip(), known) for name in text.split(",")])


def side_by_side(settings: Mapping[str, str], seed: int) -> tuple[Side, ...]:
    """Run every policy that ``policies`` names twice with these settings.

    Raises ``ValueError`` as :func:`sim.grouping.from_settings` does, and for a stream with fewer
    than two full windows, of which there is no balance to tell.
    """
    asked = prepare(settings)
    backlog = backlog_of(asked.plan, seed)
    policies = named(str(settings.get("policies", ALL)))
    return tuple([_side(asked, backlog, policy, seed) for policy in policies])


def _side(asked: GroupingRun, backlog: Plan, policy: str, seed: int) -> Side:
    full = simulate(backlog, asked.with_policy(policy), seed).summary
    run = (
        full if asked.is_backlog else simulate(asked.plan, asked.with_policy(policy), seed).summary
    )
    if "mean_rho" not in run:
        msg = f"tuples is {run['tuples']}; it takes two windows to see how a policy balances"
        raise ValueError(msg)
    throughput_hz = float(full["served_hz"])
    keeps_up = not asked.is_backlog and throughput_hz >= float(run["offered_hz"])
    return Side(
        policy,
        throughput_hz,
        throughput_hz / float(run["ideal_hz"]),
        float(run["settled_latency_us"]) if keeps_up else None,
        float(run["settled_p99_latency_us"]) if keeps_up else None,
        float(run["mean_rho"]),
        float(run["mean_imbalance"]),
        float(run["instances_a_key"]),
    )
