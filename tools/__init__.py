"""Programs for people who work on vrik: sample maker, contact sheets, benchmarks. Not in the wheel."""
