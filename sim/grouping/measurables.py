"""Measurables of room ``grouping``: timed runs, and policies side by side.

Rules of this file:

* Policies of a comparison meet the same arrivals and the same work on the same instances.
* Throughput is measured on a backlog, where senders stand still only because instances are busy: it
  is the highest throughput of a policy. Latency and balance are measured on a stream at the
  requested load, a share of the rate at which instances could serve an ideal fluid. The stream is
  the same for all policies.
* A policy whose throughput is below the rate of the stream has no latency: its queue grows for as
  long as the stream goes on.
"""

from collections.abc import Mapping, Sequence

from sim.grouping.room import backlog_of, simulate
from sim.grouping.settings import EXAMPLE, SETTINGS, GroupingRun, from_settings, prepare
from sim.kernel.plan import Plan
from sim.sweep.measurable import Figures, Measurable, Settings, moments, summaries


def side_by_side(settings: Mapping[str, str], seed: int) -> Sequence[Figures]:
    """Run every policy that setting ``policies`` names twice: on a backlog and on the stream.

    Latencies are those of the second half of the tuples, ``None`` if the policy cannot keep up.
    Raises ``ValueError`` as :func:`sim.grouping.from_settings` does, and for a stream with fewer
    than two full windows, which show no balance.
    """
    asked = prepare(settings)
    backlog = backlog_of(asked.plan, seed)
    return [_figures(asked, backlog, policy, seed) for policy in asked.policies]


def _figures(asked: GroupingRun, backlog: Plan, policy: str, seed: int) -> Figures:
    full = simulate(backlog, asked.with_policy(policy), seed).summary
    run = (
        full if asked.is_backlog else simulate(asked.plan, asked.with_policy(policy), seed).summary
    )
    if "mean_rho" not in run:
        msg = f"tuples is {run['tuples']}; it takes two windows to see how a policy balances"
        raise ValueError(msg)
    throughput_hz = float(full["served_hz"])
    keeps_up = not asked.is_backlog and throughput_hz >= float(run["offered_hz"])
    return {
        "policy": policy,
        "throughput_hz": throughput_hz,
        "share_of_ideal": throughput_hz / float(run["ideal_hz"]),
        "mean_latency_us": float(run["settled_latency_us"]) if keeps_up else None,
        "p99_latency_us": float(run["settled_p99_latency_us"]) if keeps_up else None,
        **{name: run[name] for name in ("mean_rho", "mean_imbalance", "instances_a_key")},
    }


# ------------------------------------------------------------------------------------ measurables


def measure_policies(settings: Settings, seed: int, policies: Sequence[str]) -> Sequence[Figures]:
    """Return the summaries of several policies; a backlog is simulated once for all of them."""
    asked = prepare(settings)
    plan = asked.plan_of(seed)
    return [simulate(plan, asked.with_policy(each), seed).summary for each in policies]


def measure_side(settings: Settings, seed: int) -> Figures:
    """Return the figures of one policy beside others."""
    return measure_sides(settings, seed, [settings.get("policy", SETTINGS["policy"].default)])[0]


def measure_sides(settings: Settings, seed: int, policies: Sequence[str]) -> Sequence[Figures]:
    """Return the figures of several policies; a backlog is simulated once for all."""
    return side_by_side({**settings, "policies": ",".join(policies)}, seed)


MEASURABLES: Mapping[str, Measurable] = {
    "sim": summaries(from_settings, SETTINGS, EXAMPLE, fans={"policy": measure_policies}),
    "sides": Measurable(SETTINGS, measure_side, {"policy": measure_sides}),
    "moments": moments(from_settings, SETTINGS),
}
