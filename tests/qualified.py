"""A signed qualification report for the rows of a test, written without events: the room's own tests make real ones."""

from lab.pictures.qualified import qualify

__all__ = ["qualify"]
