"""An element between two windows, of which neither holds it, ends the pipeline."""

import sys

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms.window import SlidingWindows, TimestampedValue

# Windows of 2 s, one every 5 s: [0, 2), [5, 7), ...
stream = TestStream().add_elements([TimestampedValue(("key", "in the gap"), 3)])
stream = stream.add_elements([TimestampedValue(("key", "in a window"), 6)])
stream = stream.advance_watermark_to_infinity()
print("expected: the window [5, 7) holds one element")
try:
    with beam.Pipeline("DirectRunner", PipelineOptions(streaming=True)) as pipeline:
        groups = pipeline | stream | beam.WindowInto(SlidingWindows(2, 5)) | beam.GroupByKey()
        _ = groups | beam.MapTuple(lambda _, found: print("came:", list(found)))
except IndexError as error:
    print("came: IndexError:", error)
    sys.exit(0)
sys.exit(1)
