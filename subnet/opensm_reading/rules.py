"""The closed list of what can be odd about a partitions.conf; docs/partitions-conf.md explains each.

`refuse` is for what OpenSM rejects and for what hangs on accidents of its parser; `warn` for what it takes otherwise
than its author probably meant, or will take otherwise later; `ok` for what is merely worth knowing.
"""

from collections.abc import Mapping
from types import MappingProxyType

from subnet.opensm_reading.values import Severity

RULES: Mapping[str, Severity] = MappingProxyType(
    {
        # OpenSM rejects the file.
        "no-definition": "refuse",
        "no-header": "refuse",
        "header-over-lines": "refuse",
        "scheduler-file": "refuse",
        "bad-pkey": "refuse",
        "no-pkey-left": "refuse",
        "bad-member": "refuse",
        "missing-semicolon": "refuse",
        "keyword-case": "refuse",
        "guid-without-0x": "refuse",
        "guid-zero": "refuse",
        "guid-with-colons": "refuse",
        "host-name": "refuse",
        "mgid-without-value": "refuse",
        # The meaning hangs on an accident.
        "lone-semicolon": "refuse",
        "mgid-semicolon": "refuse",
        "mgid-shared": "refuse",
        "unwritten-memory": "refuse",
        "long-line": "refuse",
        "nul-byte": "refuse",
        "carriage-return": "refuse",
        "byte-order-mark": "refuse",
        # OpenSM takes it otherwise than it looks.
        "no-default-rule": "warn",
        "sm-limited-in-default": "warn",
        "auto-numbered": "warn",
        "auto-number-claimed": "warn",
        "nameless": "warn",
        "name-cut": "warn",
        "name-unsafe": "warn",
        "pkey-truncated": "warn",
        "pkey-octal": "warn",
        "flag-prefix": "warn",
        "flag-unknown": "warn",
        "flag-value": "warn",
        "sl-differs": "warn",
        "indx0": "warn",
        "keyword-prefix": "warn",
        "membership-prefix": "warn",
        "membership-empty": "warn",
        "membership-unknown": "warn",
        "membership-both": "warn",
        "value-without-member": "warn",
        "guid-not-hex": "warn",
        "guid-out-of-range": "warn",
        "control-byte": "warn",
        "member-overridden": "warn",
        "keyword-overrides": "warn",
        "empty-partition": "warn",
        "mgid-line": "warn",
        "mgid-skipped": "warn",
        "mgid-swallows": "warn",
        "no-final-semicolon": "warn",
        # Seen on the fabric that the file is read for.
        "port-unknown": "warn",
        "node-guid": "warn",
        "not-programmed": "warn",
        "table-full": "warn",
        "default-off-index-0": "warn",
        # Worth knowing.
        "default-open": "ok",
        "merged-name": "ok",
        "pkey-with-bit-15": "ok",
        "sl-without-qos": "ok",
    }
)
