"""One move, and the named failures, on the lab's real OpenSM pair."""
