"""PyFlink: what a timer emits comes after the watermark that triggered it (reported for 1.15)."""

import sys

from pyflink.common import Configuration, Row, Time, Types
from pyflink.datastream import KeyedProcessFunction, ProcessWindowFunction
from pyflink.datastream import StreamExecutionEnvironment as Environment
from pyflink.datastream.window import TumblingEventTimeWindows
from pyflink.table import Schema, StreamTableEnvironment

settings = Configuration().set_string("python.executable", sys.executable)
environment = Environment.get_execution_environment(settings)
environment.set_parallelism(1).disable_operator_chaining()
environment.get_config().set_auto_watermark_interval(0)
tables = StreamTableEnvironment.create(environment)


class Timer(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 500)

    def on_timer(self, timestamp, ctx):
        yield timestamp


class Collect(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"[{context.window().start}, {context.window().end}): {list(elements)}"


rows = environment.from_collection([Row(1000), Row(5000)], Types.ROW_NAMED(["at"], [Types.LONG()]))
schema = Schema.new_builder().column("at", "BIGINT")
schema.column_by_expression("rt", "TO_TIMESTAMP_LTZ(`at`, 3)").watermark("rt", "rt")
stream = tables.to_data_stream(tables.from_data_stream(rows, schema.build()))
fired = stream.key_by(lambda _: 0).process(Timer(), Types.LONG()).key_by(lambda _: 0)
windows = fired.window(TumblingEventTimeWindows.of(Time.seconds(1)))
came = list(windows.process(Collect(), Types.STRING()).execute_and_collect())
print("expected: [1000, 2000) holds 1500, which its timer emits, and [5000, 6000) holds 5500")
print("came:", *came)
sys.exit(1 if len(came) == 2 else 0)
