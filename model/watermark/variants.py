"""Rules that look right and are not: the literal reading of the paper, and planted bugs.

Rules of this file:

* A variant is the table of decisions (``model/watermark/rules.py``) with entries replaced; the
  machine is the same. Its example is a smallest workload on which the reference keeps the promise
  and the variant does not.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from model.checking.variants import PLANTED, Variant
from model.vocabulary import WatermarkConfig, Workload
from model.vocabulary.windows import WindowQuery
from model.watermark.claims import MONOTONE
from model.watermark.machine import MODEL
from model.watermark.rules import RULES, Rules
from model.windows import variants
from model.windows.cluster import Cluster, wait_us
from model.windows.rules import trigger
from model.windows.state import Pending

PAPER = "dynamic watermark from the disorder of a micro-cluster, read literally"
_variant = partial(Variant, system=MODEL.system)


# ------------------------------------------------------------------------------- wrong decisions


def _as_printed(config: WatermarkConfig, cluster: Cluster) -> int:
    return wait_us("literal", config.max_wait_us, cluster)


def _ignores_flushes(
    config: WindowQuery, pending: Pending, wm_us: int, _is_flush: bool
) -> str | None:
    return trigger(config, pending, wm_us, False)


# -------------------------------------------------------------------------------------- examples


def _example(*event_times_us: int, cuts: tuple[int, ...] = (), **config: object) -> Workload:
    """Return arrivals at these event times; W = s = 10, M = 10, k = 3 unless ``config`` differs."""
    settings = {"size_us": 10, "slide_us": 10, "max_wait_us": 10, "k": 3, **config}
    values = [float(1 << seq) for seq in range(len(event_times_us))]
    return variants.example("watermark", settings, event_times_us, values, cuts)


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
            "rejected_rows_do_not_matter",
            "exact means all rows",
            "A window is exact if no pair of it is pending, whatever was rejected.",
            PLANTED,
            "A rejected row might have changed the answers of the windows of its event time.",
            replace(RULES, incomplete=variants.lacks_nothing),
            variants.with_rejected(_example(5, 6)),
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
            "eventual exactness",
            "A flush closes the windows, and corrections start as at any other time.",
            PLANTED,
            "A flush corrects whatever is pending.",
            replace(RULES, trigger=_ignores_flushes),
            _example(20, 5, 3, 4, cuts=(3,), gamma_us=1, corrections=True),
        ),
    )
}
