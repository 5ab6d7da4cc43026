"""How much one source may ask for within a minute, and when it may come again.

Windows are whole minutes of the clock. Without a working cache nothing is counted: a program that cannot ask is worse
than one that asks too often.
"""

import logging
from hashlib import sha256
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from django.core.cache import cache
from django.utils import timezone

log = logging.getLogger(__name__)

REFUSALS_A_MINUTE: Final = 60  # of tokens that are none, from one address
REQUESTS_A_MINUTE: Final = 1200  # of the API, by one person, whichever token they show
KNOWN_FOR_S: Final = 30 * 86400
LOGIN_AGAIN_S: Final = {"address": 60, "account": 300, "person": 60}  # as ACCOUNT_RATE_LIMITS and allauth say


def seconds_to_wait(*, what: str, source: str, most: int) -> int:
    """Count one request of `source`; 0, or in how many seconds it may come again after more than `most` in a minute."""
    now = int(timezone.now().timestamp())
    key = f"limit:{what}:{_digest(source)}:{now // 60}"
    try:
        cache.add(key, 0, timeout=120)
        times = cache.incr(key)
    except Exception:
        log.exception("the cache does not answer; nothing is limited")
        return 0
    return 60 - now % 60 if times > most else 0


def network_of(address: str) -> str:
    """What counts as one source: an IPv4 address, or an IPv6 /64, of which one machine can use every address."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or ip_network((found, 64), strict=False))
    return str(found)


def remember_login(*, username: str, address: str) -> None:
    """Note that somebody signed in from there; failures from elsewhere do not close that door."""
    try:
        cache.set(_known(username, address), 1, timeout=KNOWN_FOR_S)
    except Exception:
        log.exception("the cache does not answer; no address is known")


def has_signed_in_from(*, username: str, address: str) -> bool:
    """Whether that person signed in from that address within the last thirty days."""
    try:
        return cache.get(_known(username, address)) is not None
    except Exception:
        log.exception("the cache does not answer; no address is known")
        return False


def _known(username: str, address: str) -> str:
    return f"login:known:{_digest(f'{username.lower()} {network_of(address)}')}"


def _digest(source: str) -> str:
    return sha256(source.encode()).hexdigest()  # a cache takes no blanks and no long keys
