"""Room ``watermark`` on Spark: windows whose watermark follows the disorder (docs/watermark.md)."""

from spark_impl.watermark.query import (
    WatermarkQuery,
    corrections,
    late,
    make_system,
    pending,
    progress,
    rejected,
    results,
    run_in_process,
    run_workloads,
)

__all__ = [
    "WatermarkQuery",
    "corrections",
    "late",
    "make_system",
    "pending",
    "progress",
    "rejected",
    "results",
    "run_in_process",
    "run_workloads",
]
