"""Jobs of a sweep on Spark: one task each, on any free executor.

Rules of this file:

* Every job is a Spark job, submitted by its own thread, so that its result is stored when it
  arrives.
* The simulation knows nothing of Spark: workers receive its sources.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from socket import create_connection

from pyspark.sql import SparkSession

from sim.sweep.jobs import ENDED, Done, Job, Mapper, perform_with_memory_limit
from spark_impl.runtime.failures import sentence_of, without_stack_traces
from spark_impl.runtime.session import EnvironmentProblem, session
from straggler.errors import UsageError
from straggler.judging.systems import delay_interrupts

SHIPPED = ("model", "sim")
MASTERS = ("local", "spark:", "k8s:", "yarn")
SCHEME = "spark://"
PATIENCE_S = 5.0
AT_ONCE = 64
"""Default number of jobs submitted at a time; Spark queues those without a slot."""


@contextmanager
def on_spark(master: str, at_once: int = AT_ONCE) -> Iterator[Mapper]:
    """Yield a mapper whose Spark session lasts as long as the block.

    Raise :class:`UsageError` with one sentence if no session can be started.
    """
    if not master.startswith(MASTERS):
        known = "processes nor a Spark master like local[4] or spark://name:7077"
        raise UsageError(f"--on {master!r} is neither {known}")
    refuse_silent(master)
    with ExitStack() as stack:
        try:
            with delay_interrupts():
                spark = stack.enter_context(session(master, shipped=SHIPPED))
        except EnvironmentProblem as problem:
            raise UsageError(f"--on {master!r}: {problem}") from problem
        with without_stack_traces():
            yield lambda jobs: _results(spark, jobs, at_once)


def _results(spark: SparkSession, jobs: Sequence[Job], at_once: int) -> Iterator[Done]:
    with ThreadPoolExecutor(at_once) as threads:
        futures = [threads.submit(_perform, spark, job) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:  # after Ctrl-C, nobody wants the other results
            for future in futures:
                future.cancel()
            spark.sparkContext.cancelAllJobs()


def _perform(spark: SparkSession, job: Job) -> Done:
    try:
        (done,) = spark.sparkContext.parallelize([job], 1).map(perform_with_memory_limit).collect()
    except Exception as error:  # an error of Spark: the result of a job has the job's own errors
        has_ended = "exited unexpectedly" in str(error)
        sentence = ENDED if has_ended else f"Spark could not run the job: {sentence_of(error)}"
        return Done(job, (), sentence, 0.0, 0.0)
    assert isinstance(done, Done)
    return done


def refuse_silent(master: str) -> None:
    """Refuse a standalone master none of whose hosts answers; Spark itself finds other masters.

    Spark would try for more than a minute before it reports the failure.
    Raise :class:`UsageError` with one sentence that names the option.
    """
    if not master.startswith(SCHEME):
        return
    places = master.removeprefix(SCHEME).split(",")
    refusals = [_refusal(master, place) for place in places]
    if all(refusals):
        tried = " and ".join(
            f"{place} ({why})" for place, why in zip(places, refusals, strict=True)
        )
        raise UsageError(f"--on {master!r}: there is no Spark master at {tried}")


def _refusal(master: str, place: str) -> str:
    """Return the reason why nobody answers, or an empty text if somebody does."""
    host, _, port = place.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 1 << 16:
        msg = f"--on {master!r}: {place!r} is not HOST:PORT, as in spark://name:7077"
        raise UsageError(msg)
    try:
        create_connection((host.strip("[]"), int(port)), PATIENCE_S).close()
    except (OSError, UnicodeError) as error:
        return (getattr(error, "strerror", None) or str(error)).lower()
    return ""
