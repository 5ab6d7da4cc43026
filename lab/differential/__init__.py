"""The model of OpenSM's partition language against the real OpenSM, on files that are valid, odd, broken or ours."""
