"""The sshd_config of the lab's hosts: keys only, forced commands, nothing forwarded."""

from collections.abc import Mapping

_STRICT = {
    "PasswordAuthentication": "no",
    "KbdInteractiveAuthentication": "no",
    "AllowTcpForwarding": "no",
    "AllowAgentForwarding": "no",
    "X11Forwarding": "no",
    "PrintMotd": "no",
    "UseDNS": "no",
    "MaxStartups": "100",
}


def sshd_config(own: Mapping[str, str]) -> str:
    """The file with a host's `own` options, which win over the strict ones."""
    return "".join(f"{name} {value}\n" for name, value in {**_STRICT, **own}.items())
