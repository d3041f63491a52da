"""Spark's operators as the machines of a simulated cluster, without Spark."""
