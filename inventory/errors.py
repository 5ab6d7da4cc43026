"""Everything the inventory refuses, as one family; each message says what, where and how to mend it."""


class InventoryError(ValueError):
    """The root of this room's errors."""


class InvalidReport(InventoryError):
    """A body that no agent sends; the sentence names the field."""


class NotQualified(InventoryError):
    """A subnet that may not be written to: it has no qualification report, or one that did not pass."""


class AlreadyThere(InventoryError):
    """A name or GUID that stands for something else already."""


class EnrolmentRefused(InventoryError):
    """An enrolment token that is unknown, expired, revoked, used up, or for other servers."""


class HostnameTaken(InventoryError):
    """A host name under which another server has enrolled."""


class CredentialRefused(InventoryError):
    """A server credential that is unknown or revoked."""


class PortUnknown(InventoryError):
    """A port that is not in the inventory, or not one that can be confirmed."""


class ConflictDecided(InventoryError):
    """A conflict that somebody has decided already; nothing was changed."""


class DecisionRefused(InventoryError):
    """A decision that the evidence of a conflict does not allow."""


class LabelsRefused(InventoryError):
    """A file of labels that cannot be taken as it is; nothing of it was."""
