"""Tests of the pure room: nothing here starts a process, opens a socket or reads the clock."""
