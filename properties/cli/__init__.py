"""The commands of ``straggler``: one module each, with SUMMARY, EXAMPLES, add_options and run."""
