"""Promise 1 of docs/grouping.md: where tuples go.

Rules of this file:

* Nested loops over the arrivals; no router is asked. What the candidates of a key are is asked of
  the policy's definition, with the heavy keys that the trace names.
* After a wrong choice loads go on with what the trace did, so that one mistake is told once.
"""

from collections.abc import Iterator

from model.grouping.evidence import Evidence, Window
from model.vocabulary import GroupingConfig


def once(seen: Evidence) -> Iterator[str]:
    """What speaks against one instance for every arrival, from its sender."""
    known = set()
    for window in seen.windows:
        for event in window.arrivals:
            known.add(event.seq)
            routes = seen.routes.get(event.seq, [])
            if len(routes) != 1:
                yield f"Arrival {event.seq} (key {event.key!r}) went to {len(routes)} instances."
            elif not 0 <= routes[0].instance < seen.config.instances:
                yield f"Arrival {event.seq} went to instance {routes[0].instance}; there is none."
            elif routes[0].sender != seen.sender(event):
                yield (
                    f"Arrival {event.seq} was routed by sender {routes[0].sender}; "
                    f"it came to sender {seen.sender(event)}."
                )
    for seq in sorted(set(seen.routes) - known):
        yield f"Arrival {seq} was routed; there is none."


def candidate(seen: Evidence) -> Iterator[str]:
    """What speaks against the candidates, of heavy keys and of tuples."""
    routed = [0] * seen.config.senders
    for window in seen.windows:
        table = seen.table(window)
        for named in seen.heavy.get(window.number, []):
            expected = tuple(sorted(table.candidates(named.key)))
            if named.candidates != expected:
                yield (
                    f"Candidates of the heavy key {named.key!r} in window {window.number} are "
                    f"{named.candidates}; the policy has {expected}."
                )
        for event in window.arrivals:
            sender, at = seen.sender(event), seen.instance(event)
            candidates = table.candidates(event.key)
            if seen.config.policy == "round-robin":
                candidates = ((sender + routed[sender]) % seen.config.instances,)
            routed[sender] += 1
            if at is not None and at not in candidates:
                yield (
                    f"Arrival {event.seq} went to instance {at}; "
                    f"candidates of key {event.key!r} are {tuple(sorted(candidates))}."
                )


def least(seen: Evidence) -> Iterator[str]:
    """What speaks against the least load; loads are added up anew, from the trace's own routes."""
    config, n = seen.config, seen.config.instances
    latency_us = config.latency_us or (0,) * n
    loads = [[0] * n for _ in range(config.senders)]
    for window in seen.windows:
        table, costs = seen.table(window), costs_of(config, window)
        if config.policy.startswith("tag"):
            loads = [[0] * n for _ in loads]
        for event in window.arrivals:
            at, load = seen.instance(event), loads[seen.sender(event)]
            best = min(table.candidates(event.key), key=lambda i: (load[i], latency_us[i], i))
            if at is None:
                continue
            if at != best:
                yield (
                    f"Arrival {event.seq} went to instance {at}; "
                    f"best of the candidates of key {event.key!r} was {best} "
                    f"(sent there before: {load[at]} and {load[best]})."
                )
            load[at] += costs[at]


def costs_of(config: GroupingConfig, window: Window) -> list[int]:
    """c_i, by the table of policies."""
    times_us = config.times_of(window.first_batch)
    weights = [4 - tier for tier in config.tiers or (0,) * config.instances]
    if config.policy.startswith("tag"):
        return list(times_us)
    if config.policy == "nag-static":
        return [12 // weight for weight in weights]
    if config.policy == "nag-dynamic":
        return [time_us * 12 // weight for time_us, weight in zip(times_us, weights, strict=True)]
    return [1] * config.instances
