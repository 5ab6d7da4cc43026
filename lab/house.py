"""House: FabricUI's own processes around a lab, with a new database and the rows that a demo begins with."""

import os
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fabricui.broker import private_url
from lab.errors import LabError
from lab.guests.guests import HERE_FROM_GUESTS
from lab.servers import boot, report
from lab.site import Site

if TYPE_CHECKING:
    from deploy.models import Rollout
    from inventory.models import Subnet
    from partitions.selection import Selection
    from people.models import User

READY_WITHIN_S = 60
ROLLOUT_WITHIN_S = 120
WITNESS_TRIES = 3

# Who rents what at the start: partition → how many of the servers that registered, of 24.
TENANTS = (
    ("Acme Robotics", "acme", (("acme-training", 8), ("acme-inference", 4))),
    ("Globex Labs", "globex", (("globex-training", 6),)),
)


class DemoFailed(Exception):
    """The demo cannot go on; the message says why and where to look."""


@dataclass
class House:
    """One running FabricUI; everything it writes lies in `folder`."""

    folder: Path
    site: Site
    web_port: int
    register_port: int
    probe_key: Path | None = None  # of the RDMA guests; the file may come later
    operator_password: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    admin_password: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    auditor_password: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    tree: subprocess.Popen[bytes] | None = None
    enrolment_token: str = ""
    silent: int = 0  # servers whose agents were not started

    @property
    def url(self) -> str:
        """Where the web door is."""
        return f"http://127.0.0.1:{self.web_port}/"

    @property
    def log(self) -> Path:
        """The output of all processes."""
        return self.folder / "processes.log"

    # --- start and stop ------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Make the database, its first rows and the processes; return when the doors and the broker answer."""
        (self.folder / "this-is-a-demo").touch()
        os.environ.update(self._environment())
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0, interactive=False)
        # The launcher probes nothing, so only the process tree learns where this key lies; it tells its probe worker.
        key = {} if self.probe_key is None else {"FABRICUI_PROBE_KEY_FILE": str(self.probe_key)}
        with self.log.open("wb") as output:
            self.tree = subprocess.Popen(
                [sys.executable, "-m", "fabricui", "processes",
                 "--port", str(self.web_port), "--register-port", str(self.register_port)],
                stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
                env={**os.environ, **key},
            )  # fmt: skip
        self._until(lambda: _answers(self.url), "the web door answers")
        self._until(lambda: _answers(f"http://127.0.0.1:{self.register_port}/"), "the registration door answers")
        self._first_rows()

    def stop(self) -> None:
        """End all processes, by id, and wait for them."""
        if self.tree is None:
            return
        self.tree.terminate()
        try:
            self.tree.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(self.tree.pid, 9)
            self.tree.wait()
        self.tree = None

    def wait(self) -> int:
        """Wait until a process ends by itself, which is a failure; Ctrl-C comes as KeyboardInterrupt."""
        assert self.tree is not None  # noqa: S101  started by whoever waits
        status = self.tree.wait()
        raise DemoFailed(f"a process ended with status {status}; see {self.log}")

    def _environment(self) -> dict[str, str]:
        return {
            "DJANGO_SETTINGS_MODULE": "fabricui.settings",
            "FABRICUI_DEMO": "1",
            "FABRICUI_MFA": "off",  # who tries the demo has one password from the terminal; its pages say so
            "FABRICUI_DATA_DIR": str(self.folder),
            "DATABASE_URL": f"sqlite://{self.folder / 'fabricui.sqlite3'}",
            "REDIS_URL": os.environ.get("REDIS_URL") or private_url(self.folder),
            "FABRICUI_SECRET_KEY": os.environ.get("FABRICUI_SECRET_KEY") or secrets.token_urlsafe(40),
            "FABRICUI_MANAGER_KEY_FILE": str(self.site.manager_key),
            "FABRICUI_REGISTRATION_TRUST": "witnessed",
            "FABRICUI_REGISTER_URL": f"http://127.0.0.1:{self.register_port}",
            "FABRICUI_HOSTS": f"127.0.0.1,localhost,{HERE_FROM_GUESTS}",
            # User networking makes a guest's connection one of this machine's own, so it comes from loopback.
            "FABRICUI_MANAGEMENT_NETWORKS": "127.0.0.0/8",
        }

    def _until(self, is_so: Callable[[], bool], what: str, within_s: float = READY_WITHIN_S) -> None:
        deadline = time.monotonic() + within_s
        while not is_so():
            self._fail_if_ended(what)
            if time.monotonic() > deadline:
                raise DemoFailed(f"waited {within_s:.0f} s and not yet so: {what}; see {self.log}\n{self._log_tail()}")
            time.sleep(0.05)

    def _fail_if_ended(self, what: str) -> None:
        if self.tree is not None and self.tree.poll() is not None:
            raise DemoFailed(f"a process ended before {what}; see {self.log}\n{self._log_tail()}")

    def _log_tail(self) -> str:
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-15:])

    # --- rows --------------------------------------------------------------------------------------------------------
    def _first_rows(self) -> None:
        from lab.rows import enrol_site, lab_actor
        from people import operations as people

        lab = lab_actor()
        people.create_operator(username="operator", password=self.operator_password, actor=lab)
        people.create_person(username="admin", password=self.admin_password, role="ADMIN", actor=lab)
        people.create_auditor(username="auditor", password=self.auditor_password, actor=lab)
        _, self.enrolment_token = enrol_site(self.site)

    @property
    def subnet(self) -> "Subnet":
        """The demo's subnet."""
        from inventory.models import Subnet

        return Subnet.objects.get(name="lab")

    @property
    def operator(self) -> "User":
        """The demo's operator."""
        from people.models import User

        operator: User = User.objects.get(username="operator")
        return operator

    # --- the first hour of the site -----------------------------------------------------------------------------------
    def boot(self, *, silent: int = 0) -> None:
        """Boot every server but the last `silent` ones: each runs the real agent, which registers it."""
        servers = list(self.site.fabric.servers)
        self.silent = min(silent, len(servers))
        try:
            boot(
                self.site,
                servers[: len(servers) - self.silent],
                url=f"http://127.0.0.1:{self.register_port}/register/v1/",
                token=self.enrolment_token,
            )
        except LabError:
            self._fail_if_ended("the servers registered")  # then that is the cause, and the servers are not
            raise

    def witness(self) -> None:
        """Look at the fabric until it has confirmed every port that a server reported.

        The simulator loses a datagram now and then: a server that read half of its ports reports again,
        which is no reboot. Raises DemoFailed when the two witnesses still do not agree.
        """
        from inventory.models import Port

        for _ in range(WITNESS_TRIES):
            self.observe()
            left = Port.objects.filter(subnet=self.subnet, hca__isnull=False, confirmed_at=None)
            names = sorted(set(left.values_list("hca__server__hostname", flat=True)))
            if not names:
                return
            url = f"http://127.0.0.1:{self.register_port}/register/v1/"
            left_out = [self.site.fabric.server(name) for name in names]
            report(self.site, left_out, url=url, token=self.enrolment_token)
        raise DemoFailed(f"the fabric does not show what {names[0]} says of its ports; see its page at {self.url}")

    def furnish(self) -> None:
        """Confirm the ports by a look, make tenants and partitions, stage the first servers into them and prove it."""
        self.witness()
        from inventory.models import Server
        from partitions import operations as partitions
        from partitions.selection import Selection
        from people import operations as people
        from people.actor import actor_of

        actor = actor_of(self.operator)
        free = list(Server.objects.filter(subnet=self.subnet).order_by("hostname"))
        share = len(free) / 24
        for name, slug, wanted in TENANTS:
            tenant = people.create_tenant(name=name, slug=slug, actor=actor)
            for partition_name, count in wanted:
                partition = partitions.create_partition(
                    subnet=self.subnet, tenant=tenant, name=partition_name, actor=actor
                )
                for _ in range(max(1, round(count * share)) if free else 0):
                    partitions.stage_move(server=free.pop(0), source=None, target=partition, actor=self.operator)
                    if not free:
                        break
        rollout = self.roll_out(Selection.mine(), reason="First placement of the demo")
        if rollout.state != "PROVEN":
            raise DemoFailed(f"the first rollout ended {rollout.state}: {rollout.cause}")

    def observe(self) -> None:
        """Read the fabric anew, as opening the plan page does, and wait until it is read."""
        from deploy import operations as deploy

        observation = deploy.request_observation(subnet=self.subnet, why="plan")

        def is_read() -> bool:
            observation.refresh_from_db()
            return observation.state in {"DONE", "FAILED"}

        self._until(is_read, "the fabric is read")
        if observation.state == "FAILED":
            raise DemoFailed(f"the fabric could not be read: {observation.failure}")

    def roll_out(
        self, selection: "Selection", *, reason: str, before_start: Callable[[], None] | None = None
    ) -> "Rollout":
        """Observe, draw up the plan, start the rollout and wait for its end and for the board to follow."""
        from partitions import operations as partitions
        from partitions.mirror import is_settling

        self.observe()
        drawn = partitions.draw_up_plan(subnet=self.subnet, selection=selection, user=self.operator)
        if drawn.observation is None:
            raise DemoFailed("the plan rests on no look at the fabric")
        if before_start is not None:
            before_start()
        rollout = partitions.roll_out(
            subnet=self.subnet, selection=selection, actor=self.operator, plan_digest=drawn.digest,
            observation=drawn.observation, reason=reason,
        )  # fmt: skip

        def has_ended() -> bool:
            rollout.refresh_from_db()
            return rollout.finished_at is not None

        self._until(has_ended, "the rollout ends", ROLLOUT_WITHIN_S)
        if rollout.state == "PROVEN":
            self._until(lambda: not is_settling(self.subnet), "the board follows the rollout")
        return rollout

    def welcome(self) -> str:
        """What a person needs to begin."""
        count = len(self.site.fabric.servers) - self.silent
        silent = f", and {self.silent} more do not report" if self.silent else ""
        return (
            f"\nFabricUI runs with {count} simulated servers, which registered themselves"
            f" (trust: witnessed, what they say agrees with the fabric){silent}.\n\n"
            f"  {self.url}\n"
            f"  operator  {self.operator_password}\n"
            f"  auditor   {self.auditor_password}\n"
            f"  admin     {self.admin_password}\n\n"
            f"Data lie in {self.folder} and are made anew at the next start. Stop with Ctrl-C.\n"
            f"Break the site from another shell: ./run lab break --dir {self.folder / 'lab'} --help\n"
        )


def _answers(url: str) -> bool:
    """Whether something speaks HTTP there; which status it answers does not matter."""
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=2).close()
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except (OSError, urllib.error.URLError):
        return False
    return True
