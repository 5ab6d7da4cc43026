"""The operator's pages: thin functions, one page one view, a plain form underneath, an htmx fragment on top."""
