"""Errata of room ``join``: where the published chain, read literally, breaks its promises.

Source: S2J, a chain of join workers with the block protocol MP-2PF.
"""

from functools import partial

from model.join.variants import VARIANTS
from properties.join.behaviours import shortest
from properties.join.scaling import scaling
from properties.pages.errata import Erratum

S2J = "S2J, a chain of join workers with the block protocol MP-2PF"
ONCE = "Every pair of tuples that match comes out, and comes out once."


def _erratum(name: str, variant: str, promise: str, source: str) -> Erratum:
    """One that the explorer finds."""
    bug = VARIANTS[variant]
    return Erratum(name, promise, source, bug.mistake, bug.corrected, partial(shortest, variant))


ERRATA: tuple[Erratum, ...] = (
    _erratum(
        "both-copies",
        "both_visible",
        ONCE,
        f"{S2J}: a block that was sent is kept until it is acknowledged, in either direction",
    ),
    _erratum(
        "quiet-chain",
        "balance_alone",
        "What has arrived is joined in the end.",
        f"{S2J}: the condition under which a worker forwards, a difference between loads",
    ),
    _erratum(
        "local-timer",
        "local_timer",
        ONCE,
        f"{S2J}: tuples expire at the worker where they are; by whose progress is left open",
    ),
    Erratum(
        "scale-in",
        "A chain with too little to do loses workers, and one that is busy keeps them.",
        f"{S2J}: elasticity, the condition under which workers are removed",
        "Workers are removed when the utilisation has been above tau0 for five minutes.",
        "They are removed when it has been below tau0 for five minutes.",
        scaling,
    ),
)
