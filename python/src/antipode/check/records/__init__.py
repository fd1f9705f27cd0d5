"""`antipode check RECORDS…`: what dry-run records say of where a system is inconsistent (spec CHECK)."""
