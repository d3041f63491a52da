"""Random streams: one root seed, and one independent named stream for each component.

The spawn key of a stream is the SHA-256 of its name. So a stream depends on (seed, name) alone: a
new component, or a policy that draws more, changes no other stream. This makes common random
numbers possible when policies are compared.
"""

import hashlib
import struct

import numpy as np


class Seeds:
    """The random streams of one run; each name is available once.

    A negative seed raises ``ValueError``, and so does a repeated name: two components that share a
    stream would draw the same numbers and be correlated without notice.
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
            msg = f"the random stream {name!r} is in use; every component needs its own name"
            raise ValueError(msg)
        self._taken.add(name)
        words = struct.unpack("<4I", hashlib.sha256(name.encode("utf-8")).digest()[:16])
        child = np.random.SeedSequence(self._root.entropy, spawn_key=words)
        return np.random.Generator(np.random.PCG64(child))
