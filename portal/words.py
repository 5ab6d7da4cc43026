"""What a turn waits for, or why it ended, in words for the tenant: they tell of nobody else. And the provider's."""

from datetime import datetime
from enum import StrEnum
from typing import Final

from django.utils.translation import gettext, gettext_lazy

PROVIDER: Final = gettext_lazy("your provider")  # whoever of it: a tenant is told no names


class Why(StrEnum):
    """The words that are stored."""

    NONE = ""
    GATHERS = "gathers"
    QUOTA = "quota"
    RESTS = "rests"
    BUSY = "busy"
    FROZEN = "frozen"
    READ_ONLY = "read-only"
    ALARM = "alarm"
    PENDING = "pending"
    LOOKS = "looks"
    AGAIN = "again"
    PERSON = "person"
    POLICY = "policy"
    PEOPLE = "people"
    UNSAFE = "unsafe"
    SILENT = "silent"
    NOTHING = "nothing"
    FAILED = "failed"


def sentence(why: str, *, until: datetime | None = None) -> str:
    """The sentence for one of them; “” when there is nothing to say."""
    free = gettext("It goes out by itself as soon as the fabric is free.")
    said = {
        Why.GATHERS: gettext("It goes out in a few seconds, together with what you move until then."),
        Why.QUOTA: gettext("You have used this hour's rollouts; your provider raises the number on request."),
        # The same for both, and no moment: it would be the end of somebody else's rollout, to the second.
        Why.RESTS: free,
        Why.BUSY: free,
        Why.FROZEN: gettext("Your provider has stopped all changes for now. It goes out by itself once that is over."),
        Why.READ_ONLY: gettext("Your provider changes nothing on this fabric for now. It goes out once that is over."),
        Why.ALARM: gettext("Your provider is mending the fabric. It goes out by itself once that is done."),
        Why.PENDING: gettext("Your provider has another change pending for one of these servers. It waits for that."),
        Why.LOOKS: gettext("The fabric is being read, so that the change stands on what is."),
        Why.AGAIN: gettext("It could not begin just now and is tried again by itself."),
        Why.PERSON: gettext("The change has stopped half-way; a person at your provider is needed and was told."),
        Why.POLICY: gettext("Your moves wait for an operator of your provider, who sees them."),
        Why.PEOPLE: gettext("Whoever staged this may not act for you any more. Stage it again, or ask your provider."),
        Why.UNSAFE: gettext(
            "This change is larger than what goes out by itself. An operator of your provider looks at it."
        ),
        Why.SILENT: gettext(
            "A port of these servers has no link, so nobody could prove the change. Mend that and try again."
        ),
        Why.NOTHING: gettext("Nothing was staged any more."),
        Why.FAILED: gettext("It was not made, and everything is as before. Try again, or ask your provider."),
    }.get(Why(why) if why in list(Why) else Why.NONE, "")
    if until is not None and why == Why.QUOTA:
        at = gettext("It goes out by itself at about %(time)s UTC.") % {"time": f"{until:%Y-%m-%d %H:%M:%S}"}
        return f"{said} {at}"
    return said
