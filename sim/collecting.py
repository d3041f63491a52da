"""The collector of cyclic garbage, and when it stands still.

A run keeps nearly everything it makes until it is over, and makes no cycles by the tuple. Python's
collector goes through all of that again and again, looking for some: half of the time of a run.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the collector, as a context or as the decorator of a function."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            # What is still there is kept on purpose: it is old now, and not gone through at once.
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
