"""Tests of inputs, command line, strategies and packs."""
