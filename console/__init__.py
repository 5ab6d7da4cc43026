"""The operator's pages, where rooms meet. Owns no model."""
