"""Which rows of the room a person may see, and the questions that pages and ticks ask of them."""

from datetime import datetime
from typing import TYPE_CHECKING, Self

from django.contrib.auth.models import AnonymousUser
from django.db import models

from people.models import User

if TYPE_CHECKING:
    from inventory.models import Server
    from probes.models import IsolationCheck, ProbeHost, ProbePair, ProbeRun, ProbeScope  # noqa: F401  the models import this file


class _Reviewed[Row: models.Model](models.QuerySet[Row]):
    """Rows for operators and auditors; tenants see their own through the portal once that door exists."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Those `user` may see: all for operators and auditors, none for anybody else."""
        reviewers = {User.Role.OPERATOR, User.Role.AUDITOR}
        if isinstance(user, User) and user.is_active and user.role in reviewers:
            return self.all()
        return self.none()


class HostQuerySet(_Reviewed["ProbeHost"]):
    """Probe hosts."""

    def usable(self) -> Self:
        """Those that may be reached: not withdrawn."""
        return self.filter(withdrawn_at=None)


class ScopeQuerySet(_Reviewed["ProbeScope"]):
    """Partitions and probe sets whose pairs are probed."""

    def named(self) -> Self:
        """With the rows that their names come from, in one query."""
        return self.select_related("partition__tenant", "probe_set", "subnet")

    def due(self, now: datetime) -> Self:
        """Those whose next tick has come; retired partitions and sets have none."""
        alive = models.Q(partition__isnull=False, partition__retired_at=None) | models.Q(
            probe_set__isnull=False, probe_set__retired_at=None
        )
        return self.filter(alive, is_enabled=True, next_at__lte=now)


class PairQuerySet(_Reviewed["ProbePair"]):
    """The newest of each series."""

    def of(self, scope: "ProbeScope", *, profile: str, kind: str = "RDMA") -> Self:
        """Those of one profile and kind in the scope's present mode: what one heat map shows."""
        return self.filter(scope=scope, profile=profile, kind=kind, mode=scope.mode)


class RunQuerySet(_Reviewed["ProbeRun"]):
    """Runs."""

    def whole(self) -> Self:
        """With everything that a page says of a run, in one query."""
        return self.select_related(
            "scope__partition__tenant", "scope__probe_set", "sender__server", "target__server", "rollout"
        )

    def touching(self, server: "Server") -> Self:
        """Those in which `server` took part."""
        return self.filter(models.Q(sender__server=server) | models.Q(target__server=server))


class IsolationQuerySet(_Reviewed["IsolationCheck"]):
    """Checks that tenants cannot reach each other."""

    def whole(self) -> Self:
        """With everything that a page says of a check, in one query."""
        return self.select_related("sender", "target", "rollout", "subnet")
