"""An element that is late for one of its windows, and not for all of them, is reported nowhere."""

import sys

from pyflink.common import Configuration, Row, Time, Types
from pyflink.datastream import OutputTag, ProcessWindowFunction
from pyflink.datastream import StreamExecutionEnvironment as Environment
from pyflink.datastream.window import SlidingEventTimeWindows
from pyflink.table import Schema, StreamTableEnvironment

settings = Configuration().set_string("python.executable", sys.executable)
settings.set_string("python.fn-execution.bundle.size", "1")  # Watermarks wait for a bundle to end.
environment = Environment.get_execution_environment(settings)
environment.set_parallelism(1)
environment.get_config().set_auto_watermark_interval(0)
tables = StreamTableEnvironment.create(environment)


class Collect(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"[{context.window().start}, {context.window().end}): {[row[0] for row in elements]}"


# 3000 comes when the watermark is at 4500: late for [0, 4000), in time for [2000, 6000).
found = [Row(1000), Row(4500), Row(3000)]
rows = environment.from_collection(found, Types.ROW_NAMED(["at"], [Types.LONG()]))
schema = Schema.new_builder().column("at", "BIGINT")
schema.column_by_expression("rt", "TO_TIMESTAMP_LTZ(`at`, 3)").watermark("rt", "rt")
stream = tables.to_data_stream(tables.from_data_stream(rows, schema.build()))
late = OutputTag("late", Types.ROW_NAMED(["at", "rt"], [Types.LONG(), Types.INSTANT()]))
windows = SlidingEventTimeWindows.of(Time.seconds(4), Time.seconds(2))
keyed = stream.key_by(lambda _: 0).window(windows).side_output_late_data(late)
fired = keyed.process(Collect(), Types.STRING())
reported = fired.get_side_output(late).map(lambda row: f"late: {row[0]}", Types.STRING())
came = sorted(fired.union(reported).execute_and_collect())
print("expected: 3000 is in [0, 4000), or it is reported as late")
print("came:", *came)
sys.exit(0 if "[0, 4000): [1000]" in came and "late: 3000" not in came else 1)
