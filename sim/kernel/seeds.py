"""Draw random numbers: one root seed, one independent named stream per component.

The spawn key of a stream is the SHA-256 of its name. So a stream depends on (seed, name) alone:
adding a component, or changing what a policy draws, leaves every other stream as it was, which is
what makes common random numbers possible when policies are compared.
"""

import hashlib
import struct

import numpy as np


class Seeds:
    """The random streams of one run; each name is handed out once.

    Raises ``ValueError`` for a negative seed, and for a name asked for twice: two components that
    share a name would draw the same numbers and be correlated without anyone noticing.
    """

    __slots__ = ("_root", "_taken", "seed")

    def __init__(self, seed: int) -> None:
        if seed < 0:
            msg = f"seed is {seed!r}; it must be an integer of at least 0"
            raise ValueError(msg)
        self.seed = seed
        self._root = np.random.SeedSequence(seed)
        self._taken: set[str] = set()

    def stream(self, name: str) -> np.random.Generator:
        """Return the generator of component ``name``."""
        if name in self._taken:
            msg = f"the random stream {name!r} is taken; every component needs its own name"
            raise ValueError(msg)
        self._taken.add(name)
        words = struct.unpack("<4I", hashlib.sha256(name.encode("utf-8")).digest()[:16])
        child = np.random.SeedSequence(self._root.entropy, spawn_key=words)
        return np.random.Generator(np.random.PCG64(child))
