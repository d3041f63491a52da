"""Tests of the house: imports, tidiness, make targets, figures of benchmarks."""
