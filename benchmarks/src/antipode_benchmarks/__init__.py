"""Antipode's benchmarks; each is one command, and the last line of its output names a JSON file."""
