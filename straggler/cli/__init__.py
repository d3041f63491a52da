"""The commands of ``straggler``: one module each, with EXAMPLES, make_command and run."""
