"""Small sites as rows, and the list of the pages that show them: for pictures and for browser tests."""
