import pytest

from sim.kernel.seeds import Seeds


def first(seed: int, name: str) -> list[int]:
    return list(Seeds(seed).stream(name).integers(0, 1_000_000, 4))


def test_a_stream_depends_on_seed_and_name_alone() -> None:
    alone = first(7, "network")
    crowded = Seeds(7)
    crowded.stream("another").random(1_000)
    assert crowded.stream("network").integers(0, 1_000_000, 4).tolist() == alone
    assert first(8, "network") != alone
    assert first(7, "cluster") != alone


def test_numbers_do_not_change_between_versions_and_platforms() -> None:
    assert first(7, "network") == [954748, 602447, 413026, 118160]


def test_a_name_is_given_once() -> None:
    seeds = Seeds(1)
    seeds.stream("service")
    with pytest.raises(ValueError, match="'service' is in use"):
        seeds.stream("service")


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="seed is -1; it must be"):
        Seeds(-1)
