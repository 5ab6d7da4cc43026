"""What can be wrong with a change to people and tenants. Each message is a sentence for the page."""


class PeopleError(ValueError):
    """The root of this room's errors."""


class PersonExists(PeopleError):
    """A user name that is taken; upper and lower case count as the same."""


class TenantExists(PeopleError):
    """A tenant's name or slug that is taken."""


class BadSlug(PeopleError):
    """A name from which no slug for partitions.conf can be made."""


class NoSuchLanguage(PeopleError):
    """A language that the pages do not have."""


class NoSuchTimeZone(PeopleError):
    """A time zone that this machine knows nothing of."""


class NoSuchTheme(PeopleError):
    """Colours we do not have."""


class NoSecondFactor(PeopleError):
    """Somebody's second factor that is not there."""


class LastAdmin(PeopleError):
    """The only administrator, who would be none any more."""


class TooManyTokens(PeopleError):
    """A person who has as many tokens as one may have."""


class NoSuchScope(PeopleError):
    """Something that a token cannot be for, or not this person's."""


class NotToOneself(PeopleError):
    """What nobody does to their own account."""


class NoPassword(PeopleError):
    """A person of the OpenID provider's, who has no password here."""


class NoReason(PeopleError):
    """A change of somebody's account without a reason."""


class NoSuchRole(PeopleError):
    """A role that is none, or that a person does not have."""


class NotOffboarded(PeopleError):
    """A tenant that cannot be let go yet, or is gone already."""


class BadPolicy(PeopleError):
    """A policy of a tenant that is none."""


class BadName(PeopleError):
    """A name with characters that nobody sees."""
