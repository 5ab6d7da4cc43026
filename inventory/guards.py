"""What higher rooms know against a change of the inventory: they register here, so that nothing here calls up.

A guard is a function that returns a sentence against, or "".
"""

from collections.abc import Callable

from inventory.models import ManagerHost, Subnet

_before_write: list[Callable[[Subnet], str]] = []
_before_retirement: list[Callable[[ManagerHost], str]] = []


def before_write(guard: Callable[[Subnet], str]) -> None:
    """Ask `guard` before a subnet goes into mode write."""
    if guard not in _before_write:
        _before_write.append(guard)


def before_retirement(guard: Callable[[ManagerHost], str]) -> None:
    """Ask `guard` before a manager host is retired."""
    if guard not in _before_retirement:
        _before_retirement.append(guard)


def why_not_write(subnet: Subnet) -> str:
    """The first sentence against writing to `subnet`; "" when there is none."""
    return next((why for guard in _before_write if (why := guard(subnet))), "")


def why_not_retire(host: ManagerHost) -> str:
    """The first sentence against retiring `host` now; "" when there is none."""
    return next((why for guard in _before_retirement if (why := guard(host))), "")
