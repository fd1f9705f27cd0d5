"""What watches and is never asked: telemetry, dry-run, history (observers)."""
