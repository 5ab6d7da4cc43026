"""Making sure that the master ends its sweeps before anybody relies on it.

On ibsim a request that is lost is never asked again, and a sweep that waits for its answer never ends (lab/sms.py names
the ways that are known and avoided; lab/transactions.py asks again, but not in large labs). So a lab counts as up, and
as mended, only once a reload was followed by a new subnet list; otherwise both SMs are started anew.
"""

import os
import signal
import sys
from typing import TYPE_CHECKING

from lab.errors import LabError
from lab.layout import wait_until
from lab.quiet import wait_until_quiet

if TYPE_CHECKING:
    from lab.site import Site

SWEEP_WITHIN_S = 10.0  # of the largest fabric the lab is used for, several times
TRIES = 4


def settle(site: "Site", *, quiet_s: float) -> str:
    """The host name of the master, once it has ended a sweep that a reload asked for and the other one stands by.

    Restarts both SMs when it does not; raises LabError after TRIES of that.
    """
    for _ in range(TRIES):
        try:
            name = site.wait_for_roles()
            _reload_and_wait(site, name)
        except LabError as error:
            print(f"Starting both SMs again: {error}", file=sys.stderr)
            for manager in site.managers:
                if manager.opensm is not None:
                    site.order("end_opensm", manager=manager.name, kill=True)
            for manager in site.managers:
                site.order("start_opensm", manager=manager.name, partitions=None)
            continue
        wait_until_quiet(site.manager(name).list_file, quiet_s=quiet_s)
        return name
    raise LabError(f"The master ended no sweep, and starting both SMs again {TRIES} times did not help.")


def _reload_and_wait(site: "Site", name: str) -> None:
    master = site.manager(name)
    before = master.list_file.stat().st_mtime_ns if master.list_file.exists() else 0
    os.kill(master.opensm_pid, signal.SIGHUP)
    wait_until(
        lambda: master.list_file.exists() and master.list_file.stat().st_mtime_ns != before,
        timeout_s=SWEEP_WITHIN_S,
        what=f"a sweep of {master.name} after a reload",
    )
