"""The tests mirror the rooms; `python -m tests` runs them in stages as CI does."""
