"""Streams whose hot keys change, for unequal instances whose speeds change too."""

from random import Random

from model.vocabulary import Event, GroupingConfig, Workload

TUPLES = 800
WINDOW = 200
INSTANCES = 7


def skewed(policy: str, seed: int) -> Workload:
    """Return four windows whose hot keys and service times change, through three senders."""
    draws = Random(seed)
    shares = [1 / (rank + 1) for rank in range(60)]
    arrivals = []
    for seq in range(TUPLES):
        key = draws.choices(range(60), shares)[0] + 5 * (seq // (2 * WINDOW))
        value = float("nan") if seq % 50 == 49 else float(draws.randrange(64))
        arrivals.append(Event(seq, seq, f"k{key}", 100, value, 100))
    config = GroupingConfig(
        INSTANCES,
        policy,
        ((0, (1, 1, 2, 2, 5, 9, 9)), (4, (9, 9, 5, 2, 2, 1, 1))),
        latency_us=(7, 0, 3, 3, 0, 7, 9),
        senders=3,
        window_tuples=WINDOW,
        theta=0.1,
        tiers=(3, 0, 1, 2, 0, 1, 3),
        hash_seed=seed,
    )
    cuts = tuple(range(WINDOW // 2, TUPLES, WINDOW // 2))
    return Workload("grouping", tuple(arrivals), config.to_json(), cuts, name=policy)
