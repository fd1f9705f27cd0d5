"""The barrier: plan, wait, poll, prove, judge; branches and their rounds."""
