"""An engine for tests of the harness: windows in plain Python, with a mistake if asked for."""

import sys
from importlib.metadata import version
from pathlib import Path

PACKAGE = "xxhash"
"""Distribution in the place of an engine, which every environment of ours has."""
ADAPTER = """\
import json
import sys

MISTAKE = {mistake!r}


def windows(config, arrivals):
    size, slide, wait = config["size_us"], config["slide_us"], config["fixed_slack_us"]
    found, seen, latest = {{}}, set(), None
    for _, source_id, key, at, value, _, _ in arrivals:
        latest = at if latest is None else max(latest, at)
        if source_id in seen and MISTAKE != "twice":
            continue
        seen.add(source_id)
        for index in range((at - size) // slide + 1, at // slide + 1):
            is_late = index * slide + size <= latest - wait
            if is_late and MISTAKE in ("", "drops at the watermark"):
                continue
            if is_late and MISTAKE == "counts some" and source_id % 2:
                continue
            if MISTAKE == "drops at the watermark" and at <= latest - wait and at < latest:
                continue
            found.setdefault((index * slide, key if config["keyed"] else ""), []).append(value)
    for (start, key), values in found.items():
        answer = {{"task": 0, "start_us": start, "key": key, "value": sum(values)}}
        yield {{"kind": "final", **answer, "n": len(values)}}


for line in sys.stdin:
    workload = json.loads(line)
    if MISTAKE == "refuses":
        sys.exit("it cannot express this")
    steps = list(windows(workload["config"], workload["arrivals"]))
    for row in [{{"trace": 1, "producer": "fake"}}, *steps, {{"end": len(steps)}}]:
        print(json.dumps(row))
    sys.stdout.flush()
"""
CASES = """
[unasked]
late-reported = "Nobody asks."
pairs-once = "Nobody asks."
pairs-in-time = "Nobody asks."
balance = "Nobody asks."

[[case]]
promise = "windows-exact"
how = "In plain Python."
[case.settings]
aggregate = ["sum"]

[[case]]
promise = "in-time"
how = "In plain Python."
[case.settings]
aggregate = ["sum"]
[case.stream]
redeliveries = true
"""
FINDING = """
[[finding]]
promise = "{promise}"
sentence = "It has a mistake."
script = "mistake.py"
says = "Its documentation says nothing."
address = "https://example.org"
{how}
"""


def write_engine(
    folder: Path,
    mistake: str = "",
    *,
    found_in: str = "",
    explains: str = "",
    exit_code: int = 0,
    pinned: str | None = None,
    more: str = "",
    name: str = "fake",
) -> None:
    """Write an engine and its environment into ``folder``."""
    home = folder / "engines" / name
    (home / "trails").mkdir(parents=True)
    (folder / "environments" / name / "bin").mkdir(parents=True)
    python = folder / "environments" / name / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    head = {
        "title": "Fake",
        "package": PACKAGE,
        "version": pinned or version(PACKAGE),
        "homepage": "https://example.org",
        "about": "No engine.",
    }
    lines = [f'{field} = "{value}"' for field, value in head.items()]
    how = f"how = {explains!r}" if explains else ""
    finding = FINDING.format(promise=found_in, how=how) if found_in else ""
    text = "\n".join([*lines, CASES, finding, more])
    (home / "engine.toml").write_text(text, encoding="utf-8")
    (home / "adapter.py").write_text(ADAPTER.format(mistake=mistake), encoding="utf-8")
    script = f'print("what came")\nraise SystemExit({exit_code})\n'
    (home / "trails" / "mistake.py").write_text(script, encoding="utf-8")
