"""What an InfiniBand subnet is and which rules hold: plain values and functions.

This room imports only the pure part of the standard library. It never does I/O and never reads the clock.
"""
