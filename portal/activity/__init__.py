"""Activity: what happened to what is one tenant's, as its own people may read it (ADR 54)."""
