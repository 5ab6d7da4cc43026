"""Every page as data: its address, whose it is, and on which of the sites it is looked at.

`tests/lab/test_pictures.py` holds the list complete: an address that gives a page is here, or in NO_PAGE with a reason.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Page:
    """One page. What stands in its address is the scene's, by `name`, else by `view`."""

    name: str  # of the picture
    view: str = ""  # name of its address
    query: str = ""
    who: str = "olga"  # "" for nobody
    path: str = ""  # instead of a view
    click: str = ""  # CSS selector of what is clicked before the picture is taken
    template: str = ""  # shown as it is: an answer that no address gives when asked for
    status: int = 200


def _console(*names: str) -> tuple[Page, ...]:
    return tuple(Page(name.replace("_", "-"), f"console:{name}") for name in names)


BUSY: Final = (
    *_console(
        "home", "board", "plan", "rollouts", "servers", "server", "replacement", "conflicts", "leaves", "leaf",
        "strays", "enrolment", "labels", "managers", "manager", "qualification", "adoption", "drift", "difference",
        "partitions", "people", "person", "tenants", "tenant", "audit", "audit_event", "port_history",
        "pkey_history", "as_of", "first_run", "glossary", "rollout_proof",
    ),
    Page("board-open", "console:board", "open=all"),
    Page("board-search", "console:board", "q=state:staged"),
    Page("board-moving", "console:board", "open=all", click="[id^=card-] .card-move"),
    Page("plan-all", "console:plan", "selection=all"),
    *(Page(f"rollout-{state}", "console:rollout")
      for state in ("running", "stuck", "refused", "proven", "waits", "word")),
    Page("server-quiet", "console:server"),
    Page("server-between", "console:server"),
    Page("partition", "console:partition"),
    Page("partition-other", "console:partition"),
    Page("partition-storage", "console:partition"),
    Page("as-of-then", "console:as_of", "at={then}"),
    Page("way-back", "console:as_of_back", "at={then}"),
    Page("audit-print", "console:audit_export"),
    Page("servers-wrong-filter", "console:servers", "q=colour:red"),
    Page("person-by-admin", "console:person", who="admin"),
    Page("tenant-by-admin", "console:tenant", who="admin"),
    Page("webhooks", "webhooks:endpoints", who="admin"),
    Page("webhook", "webhooks:endpoint", who="admin"),
    Page("requests", "portal:operator_requests"),
    Page("request", "portal:operator_request"),
    Page("probes", "probes:overview"),
    Page("probes-scope", "probes:scope"),
    Page("probes-settings", "probes:settings"),
    Page("probes-server", "probes:server"),
    Page("probes-series", "probes:series"),
    Page("probes-run", "probes:run"),
    Page("probes-around-rollout", "probes:around_rollout"),
    Page("isolation", "probes:isolation"),
    Page("isolation-check", "probes:isolation_check"),
    Page("incidents", "probes:incidents"),
    Page("portal-evidence", "portal:evidence", who="max"),
    Page("portal-evidence-document", "portal:evidence_document", who="max"),
    Page("portal-activity", "portal:activity", who="max"),
    Page("portal-settings", "portal:settings", who="max"),
    Page("portal-settings-admin", "portal:settings", who="anna"),
    Page("portal-webhooks", "portal:settings_webhooks", who="anna"),
    Page("portal-choose", "portal:portal", who="both"),
    Page("portal-servers", "portal:servers", who="max"),
    Page("portal-server", "portal:server", who="max"),
    Page("portal-board", "portal:partitions", who="max"),
    Page("portal-partition", "portal:partition", who="max"),
    Page("portal-requests", "portal:requests", who="max"),
    Page("portal-request", "portal:request", who="max"),
    Page("portal-request-declined", "portal:request", who="max"),
    Page("portal-refused", template="portal/refused.html", who="max"),
    Page("menu", "console:home", click="[data-menu] > summary"),
    Page("help", "console:home", click="[data-menu] > summary, [data-help]"),
    Page("tokens", "tokens"),
    Page("time-zone", "time_zone"),
    Page("password", "account_change_password"),
    Page("second-factor", "mfa_index"),
    Page("second-factor-set-up", "mfa_activate_totp"),
    Page("second-factor-codes", "mfa_view_recovery_codes", who="guarded"),
    Page("second-factor-new-codes", "mfa_generate_recovery_codes", who="guarded"),
    Page("second-factor-remove", "mfa_deactivate_totp", who="guarded"),
    Page("sign-out", "account_logout"),
    Page("login", "account_login", who=""),
    Page("inactive", "account_inactive", who=""),
    Page("stranger", "landing", who="stranger", status=404),
    Page("not-found", path="/nonsense/", status=404),
    *(Page(f"error-{name}", template=f"{name}.html", status=int(name[:3]))
      for name in ("400", "403", "403_csrf", "429", "500", "503")),
    Page("sso-failed", template="account/sso_failed.html", who=""),
    Page("uncounted", template="account/uncounted.html", who="", status=503),
    Page("still-you", template="account/fresh.html", who=""),
)  # fmt: skip

EMPTY: Final = (
    *_console(
        "home", "board", "plan", "rollouts", "servers", "conflicts", "leaves", "strays", "enrolment", "labels",
        "managers", "drift", "partitions", "people", "tenants", "audit", "as_of", "first_run",
    ),
    Page("requests", "portal:operator_requests"),
    Page("probes", "probes:overview"),
    Page("isolation", "probes:isolation"),
    Page("incidents", "probes:incidents"),
    Page("webhooks", "webhooks:endpoints", who="admin"),
    Page("tokens", "tokens"),
    Page("portal-servers", "portal:servers", who="max"),
    Page("portal-board", "portal:partitions", who="max"),
    Page("portal-requests", "portal:requests", who="max"),
    Page("portal-evidence", "portal:evidence", who="max"),
    Page("portal-activity", "portal:activity", who="max"),
)  # fmt: skip

LARGE: Final = (
    *_console(
        "home", "board", "servers", "server", "partitions", "partition", "leaves", "conflicts", "tenants", "audit"
    ),
    Page("board-open", "console:board", "open={pins}"),
    Page("board-search", "console:board", "q=state:staged"),
    Page("plan-all", "console:plan", "selection=all"),
)

# A subnet with its manager hosts, and nothing in it.
BARE: Final = (
    *_console(
        "home", "board", "plan", "rollouts", "servers", "conflicts", "leaves", "strays", "enrolment", "labels",
        "managers", "drift", "partitions", "as_of", "first_run", "qualification", "adoption",
    ),
    Page("requests", "portal:operator_requests"),
    Page("probes", "probes:overview"),
    Page("isolation", "probes:isolation"),
)  # fmt: skip

# A good day: nothing is wrong, and the plan is drawn up.
QUIET: Final = (
    *_console("home", "board", "plan", "rollout", "rollout_proof", "server", "partition", "managers", "drift"),
    Page("board-open", "console:board", "open=all"),
    Page("plan-all", "console:plan", "selection=all"),
    Page("probes-scope", "probes:scope"),
    Page("probes-series", "probes:series"),
    Page("portal-servers", "portal:servers", who="max"),
    Page("portal-server", "portal:server", who="max"),
    Page("portal-board", "portal:partitions", who="max"),
)

PAGES: Final = {"busy": BUSY, "quiet": QUIET, "empty": EMPTY, "bare": BARE, "large": LARGE}

# Addresses that answer no page of their own when they are asked for.
NO_PAGE: Final = {
    "healthz": "a word for a load balancer",
    "readyz": "a word for a load balancer",
    "metrics": "for Prometheus",
    "probes:metrics": "for Prometheus",
    "probes:export": "a file",
    "console:labels_export": "a file",
    "console:as_of_data": "JSON",
    "console:board_matching": "JSON for the board",
    "console:board_new_partition": "a dialog of the board",
    "portal:activity_export": "a file",
    "portal:evidence_download": "a file",
    "portal:evidence_key": "a file",
    "portal:evidence_verifier": "a file",
    "live:stream": "server-sent events",
    "openid_connect_login": "sends the browser to the provider",
    "openid_connect_callback": "where the provider sends it back to",
    "mfa_authenticate": "asked only between the password and the page; without one it sends to the login",
}
