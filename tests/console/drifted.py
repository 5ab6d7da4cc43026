"""Rows of drift and of the watch, as the worker leaves them, for tests of pages."""

from lab.pictures.drifted import ROGUE, drifted, everything, told, watch

__all__ = ["ROGUE", "drifted", "everything", "told", "watch"]
