"""Test machinery: hosts, faults of hosts, stores and drivers, and commands to damage."""
