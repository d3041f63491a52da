"""Room ``script`` on Spark: sensor scripts, shared and placed (docs/script.md)."""

from spark_impl.script.system import run_in_process

__all__ = ["run_in_process"]
