"""Rules that look right and are not: the literal reading of the paper, and planted bugs.

Rules of this file:

* A variant is the table of decisions (``model/watermark/rules.py``) with entries replaced; the
  machine is the same. Its example is a smallest workload on which the reference keeps the promise
  and the variant does not.
* Every variant is also a factory of its name, for ``--system model.watermark.variants:NAME``.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from model.checking.variants import PLANTED, Variant, factories
from model.vocabulary import Fault, WatermarkConfig, WindowSpec, Workload
from model.watermark.claims import MONOTONE
from model.watermark.machine import MODEL
from model.watermark.rules import RULES, Rules, entered, is_idle
from model.windows import variants
from model.windows.cluster import Cluster, wait_us
from model.windows.query import Query
from model.windows.rules import trigger
from model.windows.state import Pending

PAPER = "dynamic watermark from the disorder of a micro-cluster, read literally"
_variant = partial(Variant, system=MODEL.system)


# ------------------------------------------------------------------------------- wrong decisions


def _as_printed(config: WatermarkConfig, cluster: Cluster) -> int:
    return wait_us("literal", config.max_wait_us, cluster)


class _TiesReversed(Cluster):
    """A cluster that counts equal event times as out of order."""

    __slots__ = ()

    def enter(self, time_us: int) -> None:
        """Add an arrival and count every pair again."""
        super().enter(time_us)
        times = list(self.times_us)
        self.inv = sum(earlier >= later for n, later in enumerate(times) for earlier in times[:n])


def _with_ties(cluster: Cluster, event_time_us: int) -> Cluster:
    counting = _TiesReversed(cluster.k, cluster.times_us)
    counting.enter(event_time_us)
    return counting


def _emptied(cluster: Cluster) -> Cluster:
    return Cluster(cluster.k)


def _one_too_many(cluster: Cluster, event_time_us: int) -> Cluster:
    wider = Cluster(cluster.k, cluster.times_us)
    wider.k += 1
    wider.enter(event_time_us)
    wider.k -= 1
    return wider


def _leaves_pairs_behind(cluster: Cluster, event_time_us: int) -> Cluster:
    """Keep the pairs of the arrival that leaves."""
    leaving = cluster.times_us[0] if len(cluster) == cluster.k else None
    after = entered(cluster, event_time_us)
    if leaving is not None:
        after.inv += bisect_left(sorted(after.times_us), leaving)
    return after


def _with_floats(config: WatermarkConfig, cluster: Cluster) -> int:
    pairs = len(cluster) * (len(cluster) - 1) // 2
    if not pairs or config.reading != "disorder":
        return wait_us(config.reading, config.max_wait_us, cluster)
    return int(config.max_wait_us * (1 - (1 - cluster.inv / pairs)))


def _no_warm_up(config: WatermarkConfig, cluster: Cluster) -> int:
    return wait_us(config.reading, config.max_wait_us, cluster) if len(cluster) > 1 else 0


def _one_tick_late(windows: WindowSpec, wm_us: int) -> int:
    return windows.first_index(wm_us - 1)


def _one_for_all(_key: str, _upstreams: int) -> int:
    return 0


def _at_once(_period_us: int, _before_us: int | None, _now_us: int) -> bool:
    return True


def _never_idle(
    _idle_after_us: int | None, _passed_us: int | None, _began_us: int, _arrived_us: int
) -> bool:
    return False


def _idle_until_passed(
    idle_after_us: int | None, passed_us: int | None, began_us: int, arrived_us: int
) -> bool:
    if passed_us is None:
        return idle_after_us is not None
    return is_idle(idle_after_us, passed_us, began_us, arrived_us)


def _ignores_flushes(config: Query, pending: Pending, wm_us: int, _is_flush: bool) -> str | None:
    return trigger(config, pending, wm_us, False)


# -------------------------------------------------------------------------------------- examples


def _example(
    *event_times_us: int, cuts: tuple[int, ...] = (), keys: str = "", **config: object
) -> Workload:
    """Return arrivals at these event times; W = s = 10, M = 10, k = 3 unless ``config`` differs."""
    settings = {"size_us": 10, "slide_us": 10, "max_wait_us": 10, "k": 3, **config}
    values = [float(1 << seq) for seq in range(len(event_times_us))]
    return variants.example("watermark", settings, event_times_us, values, cuts, keys)


def _apart(workload: Workload) -> Workload:
    """Return the workload with its arrivals two ticks apart."""
    arrivals = (event._replace(arrival_us=100 + 2 * event.seq) for event in workload.arrivals)
    return workload.with_(arrivals=tuple(arrivals))


# -------------------------------------------------------------------------------------- variants

VARIANTS: Mapping[str, Variant[Rules]] = {
    variant.name: variant
    for variant in (
        _variant(
            "literal",
            MONOTONE,
            "The wait is M*P, so that it is longest while tuples arrive in order.",
            PAPER,
            "The wait is M*D with the disorder D = 1 - P: the calmer, the shorter.",
            replace(RULES, wait_us=_as_printed),
            _example(1, 2, 1),
        ),
        _variant(
            "ties_reversed",
            "pairs out of order are counted",
            "Of two equal event times the later arrival counts as out of order.",
            PLANTED,
            "Equal event times are in order.",
            replace(RULES, entered=_with_ties),
            _example(5, 5),
        ),
        _variant(
            "cluster_per_batch",
            "pairs out of order are counted",
            "Every micro-batch begins with an empty cluster.",
            PLANTED,
            "The cluster continues from one micro-batch to the next.",
            replace(RULES, carried=_emptied),
            _example(9, 5, cuts=(1,)),
        ),
        _variant(
            "cluster_one_too_many",
            "pairs out of order are counted",
            "The oldest arrival leaves the cluster one arrival too late.",
            PLANTED,
            "The cluster holds the last k event times, the newest included.",
            replace(RULES, entered=_one_too_many),
            _example(9, 7, 8, 9),
        ),
        _variant(
            "pairs_left_behind",
            "pairs out of order are counted",
            "An arrival that leaves the cluster leaves its pairs behind.",
            PLANTED,
            "The pairs of an arrival leave with it.",
            replace(RULES, entered=_leaves_pairs_behind),
            _example(9, 7, 8, 9),
        ),
        _variant(
            "watermark_falls",
            "watermark never decreases",
            "The watermark is N - wait, whatever it was before.",
            PLANTED,
            "The watermark is the larger one of N - wait and the one before.",
            replace(RULES, wm_us=variants.without_running_maximum),
            _example(5, 9, 5),
        ),
        _variant(
            "wait_in_floats",
            "the wait is that of the reading",
            "The disorder is a float64, 1 less the order degree.",
            PLANTED,
            "Waits are quotients of integers, rounded down.",
            replace(RULES, wait_us=_with_floats),
            _example(5, 9, 5, max_wait_us=3),
        ),
        _variant(
            "no_warm_up",
            "the wait is that of the reading",
            "A single arrival is in order, so that the first wait is 0.",
            PLANTED,
            "A single arrival shows no order: the wait is M.",
            replace(RULES, wait_us=_no_warm_up),
            _example(5),
        ),
        _variant(
            "closes_early",
            "windows close at the watermark",
            "A window closes when the watermark has reached the last event time in it.",
            PLANTED,
            "A window is half open and closes when its end is at most the watermark.",
            replace(RULES, first_open=variants.one_tick_early),
            _example(5, 9),
        ),
        _variant(
            "closes_late",
            "windows close at the watermark",
            "A window closes when the watermark is greater than its end.",
            PLANTED,
            "It closes when the watermark has reached its end.",
            replace(RULES, first_open=_one_tick_late),
            _example(5, 10),
        ),
        _variant(
            "mixed_tuple_lost",
            "each pair once",
            "A tuple that still has an open window is in time, and its closed windows are not "
            "registered.",
            PLANTED,
            "Lateness belongs to each (tuple, window) pair.",
            replace(RULES, route=variants.loses_mixed),
            _example(15, 16, 12, 4, slide_us=5),
        ),
        _variant(
            "reopens",
            "one writer",
            "A late tuple opens its window again, so that the window is answered a second time.",
            PLANTED,
            "The stream never writes a closed window again.",
            replace(RULES, route=variants.reopens),
            _example(20, 5),
        ),
        _variant(
            "rejected_rows_do_not_matter",
            "exact means all rows",
            "A window is exact if no pair of it is pending, whatever was rejected.",
            PLANTED,
            "A rejected row might have changed the answers of the windows of its event time.",
            replace(RULES, incomplete=variants.lacks_nothing),
            variants.with_rejected(_example(5, 6)),
        ),
        _variant(
            "counts_twice",
            "each pair once",
            "A redelivery is counted like a new tuple.",
            PLANTED,
            "Identities are remembered until the watermark is L past the last window's end.",
            replace(RULES, is_redelivery=variants.never_a_redelivery),
            variants.with_redelivery(_example(5)),
        ),
        _variant(
            "clears_first",
            "eventual exactness",
            "A correction clears its pairs, then writes the answers, and may die in between.",
            PLANTED,
            "Pairs are cleared after every answer for them is durable.",
            replace(RULES, clears_first=True),
            _example(20, 5, corrections=True).with_(faults=(Fault("kill", 1),)),
        ),
        _variant(
            "gamma_only",
            "corrections do not wait",
            "A correction waits until the pending tuples span more than Gamma.",
            PLANTED,
            "It also starts when the oldest pending pair lies more than max_age behind the "
            "watermark.",
            replace(RULES, trigger=variants.without_age),
            _example(20, 5, corrections=True, max_age_us=0),
        ),
        _variant(
            "ignores_flushes",
            "nothing owed after the flush",
            "A flush closes the windows, and corrections start as at any other time.",
            PLANTED,
            "A flush corrects whatever is pending.",
            replace(RULES, trigger=_ignores_flushes),
            _example(20, 5, 3, 4, cuts=(3,), gamma_us=1, corrections=True),
        ),
        _variant(
            "one_upstream_for_all",
            "upstream clocks follow the disorder",
            "All keys pass the first upstream operator.",
            PLANTED,
            "A key passes the operator of its hash.",
            replace(RULES, upstream_of=_one_for_all),
            _example(5, keys="b", upstreams=2),
        ),
        _variant(
            "greatest_of_upstreams",
            "the least watermark is inserted",
            "The greatest watermark of the upstream operators is inserted.",
            PLANTED,
            "Tasks receive the least one, because the operators behind it still bring such tuples.",
            replace(RULES, least=max),
            _example(5, upstreams=2),
        ),
        _variant(
            "inserts_at_once",
            "the least watermark is inserted",
            "A watermark is inserted at every arrival, whatever the period is.",
            PLANTED,
            "It is inserted at the multiples of the period.",
            replace(RULES, is_due=_at_once),
            _example(5, 6, upstreams=1, insert_every_us=2),
        ),
        _variant(
            "idle_holds_back",
            "an idle operator holds nothing back",
            "An operator holds the watermark back however long it is silent.",
            PLANTED,
            "The least watermark is that of the operators that are not idle.",
            replace(RULES, is_idle=_never_idle),
            _apart(_example(5, 6, upstreams=2, idle_after_us=1)),
        ),
        _variant(
            "idle_until_passed",
            "an idle operator holds nothing back",
            "An operator that was never passed holds nothing back.",
            PLANTED,
            "It is idle only when the first arrival is longer ago than an operator may be silent.",
            replace(RULES, is_idle=_idle_until_passed),
            _example(5, upstreams=2, idle_after_us=1),
        ),
        _variant(
            "closes_before_the_insertion",
            "windows close at the inserted watermark",
            "A window closes when the inserted watermark has reached the last event time in it.",
            PLANTED,
            "It closes when the inserted watermark has reached its end.",
            replace(RULES, first_open=variants.one_tick_early),
            _example(5, 9, upstreams=1),
        ),
        _variant(
            "late_before_the_insertion",
            "late means that a watermark was inserted",
            "A tuple is late when the inserted watermark has reached the window's last event time.",
            PLANTED,
            "It is late when the inserted watermark has reached the window's end.",
            replace(RULES, first_open=variants.one_tick_early),
            _example(5, 9, upstreams=1),
        ),
    )
}

__getattr__, __dir__ = factories(VARIANTS)
