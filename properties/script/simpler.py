"""Sets of scripts that say less, and how a set is told, for counterexamples that people read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from model.vocabulary import ScriptConfig, Workload
from model.vocabulary.script import CLUSTER, Name, Sensor, Statement, Workflow, walk
from properties.script.formatter import written


def simpler(workload: Workload) -> Iterator[Workload]:
    """The same arrivals for less.

    Fewer scripts, fewer statements, one worker, a fixed watermark, or fewer sensors.
    """
    config = ScriptConfig.from_json(workload.config)
    flows = config.workflows
    found: list[tuple[Workflow, ...]] = [(flow,) for flow in flows] if len(flows) > 1 else []
    found += [(*flows[:n], *flows[n + 1 :]) for n in range(len(flows)) if len(flows) > 2]
    for n, flow in enumerate(flows):
        found += [(*flows[:n], each, *flows[n + 1 :]) for each in _shorter(flow)]
    configs = [replace(config, workflows=each) for each in found]
    if config.workers > 1:
        configs.append(replace(config, workers=1))
    if config.watermark != "fixed":
        configs.append(replace(config, watermark="fixed", cluster=CLUSTER))
    used = config.asked_for | _named(flows) | {event.key for event in workload.arrivals}
    kept = tuple(pair for pair in config.sensors if pair[0] in used)
    if len(kept) < len(config.sensors):
        configs.append(replace(config, sensors=kept))
    for each in configs:
        yield workload.with_(config=each.to_json())


def _shorter(flow: Workflow) -> Iterator[Workflow]:
    """Without a statement that no other one needs."""
    for statement in reversed(flow.statements):
        others = tuple(each for each in flow.statements if each is not statement)
        if others and statement.name not in _names(others):
            yield Workflow(flow.name, others)


def _names(statements: Sequence[Statement]) -> set[str]:
    nodes = (node for each in statements for node, _ in walk(each.expression))
    return {node.name for node in nodes if isinstance(node, Name)}


def _named(flows: Sequence[Workflow]) -> set[str]:
    statements = (each for flow in flows for each in flow.statements)
    nodes = (node for each in statements for node, _ in walk(each.expression))
    return {node.id for node in nodes if isinstance(node, Sensor)}


def settings(workload: Workload) -> Mapping[str, Any]:
    """What a reader wants to know of a set: the scripts as they are written, and how they run."""
    config = ScriptConfig.from_json(workload.config)
    scripts = {
        flow.name: "; ".join(written(each.name, each.expression) for each in flow.statements)
        for flow in config.workflows
    }
    names = ["workers", "lateness_us", "cap_percent"]
    if config.watermark != "fixed":
        names += ["watermark", "cluster"]
    return {**{name: getattr(config, name) for name in names}, **_quoted(scripts)}


def _quoted(scripts: Mapping[str, str]) -> dict[str, str]:
    return {f"the script {name}": f"[{text}]" for name, text in scripts.items()}
