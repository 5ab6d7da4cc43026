"""Make a partition table true on every manager host, and prove it from the fabric. Knows no partition rows."""
