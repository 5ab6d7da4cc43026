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


class TrailUnavailable(AuditError):
    """Nothing can be recorded now, and therefore nothing changed; the sentence says why and how to mend it."""


class KeyUnavailable(TrailUnavailable):
    """The secret keys of the trail are missing, unreadable, or older than those that were used."""


class TrailUnwritable(TrailUnavailable):
    """The database refuses to take an event."""


class SigningUnavailable(AuditError):
    """The head cannot be signed or anchored: the key or a place outside is missing. The sentence says which."""


class NotBehind(AuditError):
    """There is nothing to tell of a restored database: no anchor knows more than the trail."""


class SpoolUnwritable(TrailUnavailable):
    """Not even the spool beside the database takes an event."""
