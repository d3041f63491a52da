"""Hashes of keys are XXH64 in other arithmetic: model and Spark share the function."""

from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import stable_hash, task_of
from properties.oracles.hashing import xxh64

TEXTS = st.text(max_size=20) | st.integers(0, 100).map(lambda n: "München, 日本 " * n)


@given(TEXTS, st.integers(0, 1 << 63), st.integers(1, 50))
def test_a_hash_is_xxh64_and_a_task_its_remainder(text: str, seed: int, tasks: int) -> None:
    signed = xxh64(text.encode(), seed)
    signed -= (1 << 64) * (signed >= 1 << 63)
    assert stable_hash(text, seed) == signed
    usual = xxh64(text.encode(), 42)
    usual -= (1 << 64) * (usual >= 1 << 63)
    assert task_of(text, tasks) == next(n for n in range(tasks) if (usual - n) % tasks == 0)
