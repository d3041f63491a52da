"""All claims of a room, and the workloads on which a planted bug breaks one of them."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import model
from model.checking.claims import ClaimSet, Outcome
from model.join.run import run as run_chain
from model.vocabulary import Trace, Workload
from straggler.rooms import find_room
from straggler.strategies.examples import cases_of, collect
from tests.quality.planting import Planted, Run

SEED = 11
CASES = 50
"""Drawn workloads of a room."""


def reference(room: str) -> Run:
    """Return the model of a room; the reference of room join joins without a chain."""
    return run_chain if room == "join" else find_room(room).reference()


def variants_of(room: str) -> Mapping[str, Any]:
    """Return the planted bugs of a room that are rules of its model, by name."""
    variants: Mapping[str, Any] = import_module(f"model.{room}.variants").VARIANTS
    return variants


@cache
def claim_sets(room: str) -> tuple[ClaimSet[Any], ...]:
    """Return the sets of claims of a room, in order of declaration."""
    found: dict[int, ClaimSet[Any]] = {}
    package = import_module(f"{model.__name__}.{room}")
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        for each in vars(import_module(module.name)).values():
            if isinstance(each, ClaimSet):
                found[id(each)] = each
    return tuple(found.values())


def claims_of(room: str) -> list[str]:
    """Return the name of every claim of a room."""
    return [claim.name for each in claim_sets(room) for claim in each.claims]


@cache
def workloads(room: str) -> list[Workload]:
    """Return the examples of a room's variants, then drawn workloads, the same ones every time."""
    drawn = collect(cases_of(room), CASES, SEED)
    if room == "grouping":  # few drawn routers have heavy keys with sets of their own
        tag = [each.with_(config={**each.config, "policy": "tag"}) for each in drawn[::3]]
        drawn = [each for pair in zip(tag, drawn, strict=False) for each in pair]
    return [*(each.example for each in variants_of(room).values()), *drawn]


def broken(room: str, workload: Workload, trace: Trace) -> set[str]:
    """Return the claims of a room that are broken on a trace."""
    verdicts = find_room(room).check(workload, trace).verdicts
    return {each.claim for each in verdicts if each.outcome is Outcome.BROKEN}


def assert_breaks(room: str, claim: str, run: Run, bug: Planted) -> None:
    """Assert that a bug breaks a claim on a workload where nothing is broken without it.

    The bug is gone when the claim judges.
    """
    for workload in workloads(room):
        trace = bug.trace_of(run, workload)
        if trace is not None and claim in broken(room, workload, trace):
            assert broken(room, workload, run(workload)) == set()
            return
    raise AssertionError("the bug breaks nothing")
