"""Workloads of a promise, drawn with the settings that an engine can express.

Engines with the same settings and streams get the same workloads.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

from hypothesis import strategies as st

from model.vocabulary import Event, GroupingConfig, JoinConfig, SlackConfig, Workload
from model.vocabulary.join import OPERATORS, And, Apart, Band, Equi, Ineq, Predicate
from model.vocabulary.join_predicates import predicate_to_json
from model.vocabulary.settings import JsonObject, nearest
from model.vocabulary.workload import without_redeliveries
from sim.kernel.log import simulate_arrivals
from straggler.conformance.engines import Asked
from straggler.conformance.promises import PROMISES, Values
from straggler.errors import UsageError
from straggler.rooms.windows.queries import tasks_of
from straggler.strategies import clusters, queries, streams
from straggler.strategies import join as chains
from straggler.strategies.examples import RUN, collect

OWN_TASKS = "own"
"""In the place of a number of tasks: as many as it takes that no two keys share one."""
ROUTED = (2, 4, 8)
"""Numbers of instances among which tuples are routed."""
TRIES = 4
"""Number of times that a list may be made longer to find different workloads."""
WINDOWS = 3
"""Windows of a stream that is routed; the first one knows no heavy keys and is not judged."""


def draw_workloads(asked: Asked, number: int, seed: int) -> list[Workload]:
    """Return different workloads of a case, the same ones for the same seed.

    There are fewer than ``number`` if so many different ones are not found. Raise
    :class:`UsageError` if a setting does not exist or has an impossible value.
    """
    promise = PROMISES[asked.promise]
    settings = {**promise.settings, **asked.settings}
    room = _ROOMS[promise.room]
    strategy = room(settings, asked)
    found: dict[str, Workload] = {}
    for times in range(1, TRIES + 1):  # Hypothesis repeats itself; a longer list begins the same
        try:
            drawn = collect(strategy, times * RUN * -(-number // RUN), seed)
        except ValueError as error:
            raise UsageError(f"a case of {asked.promise}: {error}") from error
        for workload in drawn:
            fitted = _fit(workload, asked)
            found.setdefault(json.dumps(fitted.to_json()), fitted)
        if len(found) >= number:
            break
    chosen = list(found.values())[:number]
    return [each.with_(name=f"{asked.promise} {n}") for n, each in enumerate(chosen)]


def _fit(workload: Workload, asked: Asked) -> Workload:
    """Return a workload with the streams that an engine can take."""
    events = workload.arrivals
    events = (events if asked.redeliveries else without_redeliveries(events))[: asked.arrivals_max]
    factor = asked.time_factor
    slower = tuple(
        event._replace(
            event_time_us=event.event_time_us * factor, arrival_us=event.arrival_us * factor
        )
        for event in events
    )
    config = dict(workload.config)
    for name, value in config.items():
        if name.endswith("_us") and isinstance(value, int):
            config[name] = value * factor
    if config.get("tasks") == OWN_TASKS:
        config["tasks"] = tasks_of({event.key for event in events})
    cuts = tuple(cut for cut in workload.cuts if cut <= len(slower))
    cuts = tuple(range(asked.batch, len(slower), asked.batch)) if asked.batch else cuts
    return workload.with_(
        arrivals=slower, config=config, cuts=cuts, flush=True, seed=0, name=asked.promise
    )


# ------------------------------------------------------------------------------------- by room


@st.composite
def _chosen(draw: st.DrawFn, settings: Values, drawn: JsonObject) -> dict[str, Any]:
    """Draw the settings that are given, in the place of those that were drawn."""
    config = dict(drawn)
    for name, values in settings.items():
        if name not in config:
            raise ValueError(f"there is no setting {name!r}{nearest(name, config)}")
        config[name] = draw(st.sampled_from(list(values)))
    return config


@st.composite
def _windows(draw: st.DrawFn, settings: Values, asked: Asked) -> Workload:
    chosen = draw(_chosen(settings, draw(streams.configs()).to_json()))
    tasks = chosen["tasks"]
    config = SlackConfig.from_json({**chosen, "tasks": 1 if tasks == OWN_TASKS else tasks})
    workload = draw(streams.workloads(config))
    finite = tuple(_rounded([each for each in workload.arrivals if isfinite(each.value)]))
    cuts = tuple(cut for cut in workload.cuts if cut <= len(finite))
    return workload.with_(
        arrivals=finite, cuts=cuts, config={**workload.config, "tasks": tasks}, flush=True
    )


def _rounded(events: list[Event]) -> Iterator[Event]:
    """Yield events with event times that often are equal, or lie on the boundary of a window."""
    for seq, event in enumerate(events):
        at_us = event.event_time_us // streams.UNIT_US * streams.UNIT_US
        yield event._replace(seq=seq, event_time_us=at_us)


UNKNOWN = ("idle_after_us", "r_columns", "s_columns")
_DISTANCES = st.sampled_from([0.0, 1.0, 4.0])
_COLUMNS = st.sampled_from(["key", "value"])
_SINGLE: st.SearchStrategy[Predicate] = st.one_of(
    st.builds(Equi, _COLUMNS),
    st.builds(Band, st.just("value"), _DISTANCES),
    st.builds(Apart, st.just("value"), _DISTANCES),
    st.builds(
        lambda column, op: Ineq(column, op, column), _COLUMNS, st.sampled_from(list(OPERATORS))
    ),
)
PREDICATES: st.SearchStrategy[Predicate] = st.one_of(
    _SINGLE, st.lists(_SINGLE, max_size=2).map(lambda parts: And(tuple(parts)))
)


@st.composite
def _pairs(draw: st.DrawFn, settings: Values, asked: Asked) -> Workload:
    drawn = draw(chains.cases(decided=False))
    names = [name for name, _ in drawn.config["queries"]]
    named = [[name, predicate_to_json(draw(PREDICATES))] for name in names]
    # Engines of others do not know streams that fall silent, and adapters no further columns.
    known = {name: value for name, value in drawn.config.items() if name not in UNKNOWN}
    config = draw(_chosen(settings, {**known, "queries": named}))
    arrivals = tuple(event._replace(more=()) for event in drawn.arrivals)
    return drawn.with_(arrivals=arrivals, config=JoinConfig.from_json(config).to_json())


@st.composite
def _routes(draw: st.DrawFn, settings: Values, asked: Asked) -> Workload:
    """Draw streams of skewed keys for equal instances, the longer the more instances there are."""
    router = draw(queries.balanced_routers(draw(st.sampled_from(ROUTED)), [1]))
    chosen = draw(_chosen(settings, replace(router, times_us=()).to_json()))
    config = GroupingConfig.from_json(chosen)
    plan, seed = draw(clusters.cases(queries.router_shape(router)))
    events = simulate_arrivals(plan, seed).events[: WINDOWS * config.window_tuples]
    cuts = tuple(range(config.window_tuples, len(events), config.window_tuples))
    return Workload("grouping", events, config.to_json(), cuts)


_ROOMS: Mapping[str, Callable[[Values, Asked], st.SearchStrategy[Workload]]] = {
    "slack": _windows,
    "join": _pairs,
    "grouping": _routes,
}
