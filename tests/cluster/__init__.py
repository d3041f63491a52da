"""Tests that only a cluster of several hosts can pass: make cluster runs them."""
