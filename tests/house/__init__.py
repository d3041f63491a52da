"""Tests of the house: imports, tidiness, make targets, benchmark runner."""
