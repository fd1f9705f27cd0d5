"""What `antipode check` costs: time and memory against the size of what it is given (benchmarks/check.md)."""
