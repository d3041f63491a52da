"""Experiments of room ``grouping`` that ``make bench`` runs: the streams that they ask for."""

from collections.abc import Mapping, Sequence

import pytest

from sim.grouping import experiments


def test_windows_are_large_enough_for_every_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Mapping[str, str]] = []

    def summaries(
        settings: Mapping[str, str], policies: Sequence[str], _seed: int
    ) -> Mapping[str, Mapping[str, object]]:
        asked.append(settings)
        return {policy: {"mean_rho": 0.5} for policy in policies}

    monkeypatch.setattr(experiments, "_summaries", summaries)
    found = dict(experiments.rho_over_instances())
    assert set(found.values()) == {0.5}
    sizes = {int(each["instances"]): int(each["window_tuples"]) for each in asked}
    assert sorted(sizes) == sorted(experiments.INSTANCES)
    # A mean over fewer than 200 tuples an instance says little about balance.
    assert all(tuples >= max(2_000, 200 * n) for n, tuples in sizes.items())
    assert all(int(each["tuples"]) >= 3 * int(each["window_tuples"]) for each in asked)
