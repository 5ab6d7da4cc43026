"""What should be: staging, plans, the mirror and the board, on rows."""
