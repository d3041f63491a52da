"""Speed of the explorer, measured on two-phase commit with 7 resource managers."""

import statistics
import time

from model.checking.explorer import explore
from tests.model.two_phase_commit import CLAIMS, two_phase_commit

MANAGERS = 7
RUNS = 3


def measure() -> dict[str, float]:
    """Return the median of generated states (transitions) a second, and the unique states.

    The claims of the model are checked, as in any real use.
    """
    rates_hz = []
    for _ in range(RUNS):
        started_s = time.perf_counter()
        result = explore(two_phase_commit(MANAGERS), CLAIMS)
        rates_hz.append(result.transitions / (time.perf_counter() - started_s))
    return {
        "generated_states_per_s": statistics.median(rates_hz),
        "unique_states": float(result.unique_states),
    }
