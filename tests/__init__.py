"""Tests of our own tools, in folders that mirror the code."""
