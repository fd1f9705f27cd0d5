"""Settings, logs, call sites, bounded maps, threads of our own, and the observer port."""
