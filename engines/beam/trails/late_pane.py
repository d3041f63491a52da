"""The default trigger gives a window a second pane, with late data that it should discard."""

import os
import sys
import tempfile

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms.window import FixedWindows, TimestampedValue


def panes(watermark):
    """Return the panes of [0, 10) if an element comes late, at this watermark."""
    stream = TestStream().add_elements([TimestampedValue(("key", "in time"), 1)])
    stream = stream.advance_watermark_to(watermark)
    stream = stream.add_elements([TimestampedValue(("key", "late"), 2)])
    stream = stream.advance_watermark_to_infinity()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "panes")

        def write(_, found):
            with open(path, "a", encoding="utf-8") as lines:
                lines.write(f"{sorted(found)}\n")

        with beam.Pipeline("DirectRunner", PipelineOptions(streaming=True)) as pipeline:
            windows = beam.WindowInto(FixedWindows(10))
            _ = pipeline | stream | windows | beam.GroupByKey() | beam.MapTuple(write)
        with open(path, encoding="utf-8") as lines:
            return lines.read().splitlines()


print("expected: the window [0, 10) has one pane, ['in time']; the late element is discarded")
came = {watermark: panes(watermark) for watermark in (10, 11)}
for watermark, found in came.items():
    print(f"came, if the watermark was at {watermark}:", *found)
sys.exit(0 if any(len(found) > 1 for found in came.values()) else 1)
