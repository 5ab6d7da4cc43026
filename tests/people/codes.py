"""What an authenticator app shows, for the tests of the second factor."""

import time

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value
from allauth.mfa.utils import decrypt

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


def set_up(person):
    """Give `person` a second factor, as one that was set up long ago; return its recovery codes."""
    TOTP.activate(person, SECRET)
    return RecoveryCodes.activate(person).generate_codes()


def code(secret=SECRET, *, step=0):
    """The code of now, or of so many half minutes later (-1 to 1 are taken)."""
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30 + step))


def stored_secret(person):
    """The secret in clear, as the server reads it."""
    return decrypt(Authenticator.objects.get(user=person, type="totp").data["secret"])
