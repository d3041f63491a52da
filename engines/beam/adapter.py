"""Apache Beam behind the judge's protocol: windows and joins of a TestStream on the local runner.

Rules of this file:

* The TestStream moves the watermark as the workload does: after each arrival, to the largest event
  time less the wait; in a join, to that of the stream that lies behind. A window takes elements
  while the watermark stands exactly at its end, so it lies 1 ms above that of the workload.
* `feedback_us` says how long after its end a window is known; it is Beam's allowed lateness. Panes
  accumulate: the first pane of a window is its result, and the last one its final answer.
* Beam counts a redelivery again, so a pane keeps each identity once.
"""

import itertools
import json
import os
import statistics
import sys
import tempfile

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms import trigger
from apache_beam.transforms.window import SlidingWindows, TimestampedValue
from apache_beam.utils.timestamp import Duration, Timestamp

NEVER_US = 10**15
AGGREGATES = {"sum": sum, "count": len, "avg": statistics.fmean, "min": min, "max": max}
SOURCE, KEY, AT, VALUE, STREAM = 1, 2, 3, 4, 6


class _Write(beam.DoFn):
    """Write what arrives to a file, one line each: workers do not share variables."""

    def __init__(self, path):
        self.path = path

    def process(self, found, window=beam.DoFn.WindowParam, pane=beam.DoFn.PaneInfoParam):
        row = [window.start.micros, pane.index, found]
        with open(self.path, "a", encoding="utf-8") as lines:
            lines.write(json.dumps(row) + "\n")


def run(arrivals, wait_us, streams, transform):
    """Feed arrivals to a transform, and return its rows: start of a window, pane, and content."""
    stream, latest_us, watermark_us = TestStream(), {}, None
    for arrival in arrivals:
        element = (arrival[KEY], arrival)
        stream.add_elements([TimestampedValue(element, Timestamp(micros=arrival[AT]))])
        name = arrival[STREAM] if streams > 1 else ""
        latest_us[name] = max(latest_us.get(name, arrival[AT]), arrival[AT])
        behind_us = min(latest_us.values()) - wait_us
        if len(latest_us) == streams and (watermark_us is None or watermark_us < behind_us):
            watermark_us = behind_us
            stream.advance_watermark_to(Timestamp(micros=watermark_us))
    stream.advance_watermark_to_infinity()
    options = PipelineOptions([])
    options.view_as(StandardOptions).streaming = True
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows")
        with beam.Pipeline("DirectRunner", options=options) as pipeline:
            _ = pipeline | stream | transform | beam.ParDo(_Write(path))
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]


def run_windows(config, arrivals):
    """Return the steps of a windowed query."""
    size_us, slide_us, wait_us = (config[f"{name}_us"] for name in ("size", "slide", "fixed_slack"))
    if config["tasks"] != 1 or config["control"] != "fixed":
        sys.exit("one watermark with a fixed wait needs tasks=1, control=fixed")
    if config["aggregate"] not in AGGREGATES:
        sys.exit(f"aggregate {config['aggregate']!r} is none of {', '.join(AGGREGATES)}")
    windows = beam.WindowInto(
        SlidingWindows(Duration(micros=size_us), Duration(micros=slide_us)),
        trigger=trigger.AfterWatermark(late=trigger.AfterCount(1)),
        accumulation_mode=trigger.AccumulationMode.ACCUMULATING,
        allowed_lateness=Duration(micros=config["feedback_us"] or 0),
    )
    to_key = beam.Map(lambda element: (element[0] if config["keyed"] else "", element[1]))
    to_lists = beam.MapTuple(lambda key, found: (key, list(found)))
    rows = run(arrivals, wait_us - 1000, 1, to_key | windows | beam.GroupByKey() | to_lists)
    rows.sort(key=lambda row: row[:2])
    panes = {}
    for start_us, _, (key, found) in rows:
        values = list({arrival[SOURCE]: arrival[VALUE] for arrival in found}.values())
        value = float(AGGREGATES[config["aggregate"]](values))
        panes.setdefault((start_us, key), []).append((value, len(values)))
    steps = []
    for (start_us, key), found in panes.items():
        place = {"task": 0, "start_us": start_us, "key": key}
        for kind, (value, n), count in (("result", found[0], "n_rcv"), ("final", found[-1], "n")):
            steps.append({"kind": kind, **place, "value": value, count: n})
    return steps


def run_join(config, arrivals):
    """Return the steps of an equi-join: groups of both streams in windows of 2W, one every W.

    A pair at most W apart shares the window in whose first half its earlier tuple lies.
    """
    (query, predicate), *more = config["queries"]
    if more or predicate != ["equi", "key"]:
        sys.exit(f"queries is {config['queries']}; a keyed join needs one query, equi on the key")
    window_us = config["window_us"]
    width_us = max(1000, window_us)
    wait_us = NEVER_US if config["lateness_us"] is None else config["lateness_us"]
    windows = beam.WindowInto(
        SlidingWindows(Duration(micros=2 * width_us), Duration(micros=width_us))
    )

    class Join(beam.PTransform):
        def expand(self, found):
            windowed = found | windows
            sides = {
                side: windowed
                | side >> beam.Filter(lambda each, side=side: each[1][STREAM] == side)
                for side in "RS"
            }
            return (
                sides
                | beam.CoGroupByKey()
                | beam.MapTuple(lambda _, both: [list(both["R"]), list(both["S"])])
            )

    pairs = []
    for start_us, _, (r_side, s_side) in run(arrivals, wait_us, 2, Join()):
        r_ids = {r[SOURCE]: r for r in r_side}
        s_ids = {s[SOURCE]: s for s in s_side}
        for r, s in itertools.product(r_ids.values(), s_ids.values()):
            in_first_half = start_us <= min(r[AT], s[AT]) < start_us + width_us
            if in_first_half and abs(r[AT] - s[AT]) <= window_us:
                pairs.append({"query": query, "r_id": r[SOURCE], "s_id": s[SOURCE]})
    return [{"kind": "match", **pair} for pair in pairs]


for line in sys.stdin:
    workload = json.loads(line)
    if not workload["flush"]:
        sys.exit("flush is false; the end of a stream closes every window")
    rooms = {"join": run_join, "slack": run_windows}
    found = rooms[workload["room"]](workload["config"], workload["arrivals"])
    for row in [{"trace": 1, "producer": "Apache Beam"}, *found, {"end": len(found)}]:
        print(json.dumps(row))
    sys.stdout.flush()
