"""Values and their text: write ids, lineages, their sections and wire form, verdicts, results."""
