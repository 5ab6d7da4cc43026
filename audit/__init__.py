"""Who did what, to what, when: append-only events in one hash chain. `record()` is the only door in."""
