"""What only a cluster of several hosts can show: make cluster runs these tests."""
