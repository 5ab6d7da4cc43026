"""Live hints: tell open pages that something changed, never what. The page asks again, with its own rights."""
