"""What can go wrong when something is recorded."""


class AuditError(Exception):
    """The root of this room's errors."""


class OutsideTransaction(AuditError):
    """`record()` was called where its event could outlive, or be lost without, the change it tells of."""


class AppendOnly(AuditError):
    """Somebody tried to change or remove an event."""


class NotRecordable(AuditError, ValueError):
    """A value that cannot stand in an event, with the place where it is."""


class ChainMoved(AuditError):
    """Another writer appended between our read and our write; the whole transaction has to be tried again."""
