"""The straight line: make a revision true on every manager host, and prove it from the fabric.

stage on all → place on the standbys, then on the master → reload the master → wait behind the sweep barrier → read
every table → PROVEN; or put the parent back, or say exactly what a person must do. All choices were made in the plan.
Every step may be run again: what stands on a host is known by its digest and by the fencing generation beside it.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Final

from django.utils import timezone

from audit import about, outage
from audit.errors import TrailUnavailable
from deploy import evidence, putting_back, restore
from deploy.errors import ClaimLost
from deploy.leave import withdrawn
from deploy.look import HostView, Look, ManagerHosts, told
from deploy.models import Rollout
from deploy.proof import Judgement, Unseen, Verdict
from deploy.qualification import changed_since
from deploy.readiness import binding, foreign_master, may_lack, no_master, overtaken, unready
from deploy.story import Story
from deploy.terms import Terms
from remote.errors import RemoteError, StaleGeneration
from remote.manager_host import HostVerbs

log = logging.getLogger(__name__)

State = Rollout.State
MISLED_TRIES: Final = 5  # so often a port that follows another LID may be a late sweep; then a person must look


def run(*, rollout: Rollout, hosts: Sequence[HostVerbs], clock: Callable[[], datetime] = timezone.now) -> None:
    """Bring `rollout` as far as it can go now: to its end, or to a state that is looked at again later.

    `hosts` are all manager hosts of the subnet. Does nothing when another worker runs it, or it has ended. Whatever
    it raises is a bug or the database's trouble; the state stays as it is, and a later call goes on from there.
    """
    with about.rollout(rollout.public_id):
        _run(rollout, hosts, clock)


def _run(rollout: Rollout, hosts: Sequence[HostVerbs], clock: Callable[[], datetime]) -> None:
    story = Story.take_up(rollout, clock=clock)
    if story is None:
        return
    with ThreadPoolExecutor(max_workers=3 * len(hosts) + 1, thread_name_prefix="manager-host") as threads:
        terms = Terms.of(story.rollout, threads=threads)
        managers = ManagerHosts(hosts, registered=terms.registered, threads=threads)
        try:
            if story.state in (State.UNPROVEN, State.DEGRADED):
                _look_again(story, managers, terms)
            if story.state == State.QUEUED:
                story.advance(State.STAGING, "A worker has taken up the rollout and looks at the manager hosts.")
            if story.state == State.STAGING:
                _stage(story, managers, terms)
            if story.state == State.PLACING:
                _place(story, managers, terms)
            if story.state == State.RELOADING:
                _reload(story, managers, terms)
            if story.state == State.READING_BACK:
                _read_back(story, managers, terms)
            if story.state == State.RESTORING:
                restore.put_parent_back(story, managers, terms)
        except TrailUnavailable as error:
            story.put_off(f"Waiting for the audit trail: what cannot be recorded is not done. {error}")
        except ClaimLost as lost:
            log.info("rollout %s: %s This worker stops.", rollout.public_id, lost)
        except Exception:
            story.give_back()
            raise
        finally:
            rollout.refresh_from_db()


def _stage(story: Story, managers: ManagerHosts, terms: Terms) -> None:
    """Put the revision beside the partition file of every host, or refuse. Nothing was placed before this."""
    revision = story.rollout.revision
    cause = withdrawn(story.rollout.subnet_id, mends=putting_back.is_put_back(story.rollout))
    if cause:
        story.advance(State.REFUSED, f"Refused; nothing was placed. {cause}", cause=cause)
        return
    look = managers.look(staging=lambda host: host.stage(terms.data, digest=revision.digest))
    cause = (
        unready(
            putting_back.forgiving(story.rollout, look),
            accepted=putting_back.accepted(story.rollout, look, dict(terms.accepted)),
            known=terms.known,
            parent=terms.parent,
            sm_ports=terms.sm_ports,
            place=terms.place,
            generation=story.rollout.generation or 0,
            without=terms.without,
        )
        or putting_back.look_before(story, managers)
        or terms.foreign_in_before()
        or changed_since(story.rollout.subnet_id, look)
    )
    at_start = {
        view.name: {"role_at_start": view.role, "digest": view.digest, "failure": view.failure} for view in look.views
    }
    if cause:
        story.advance(State.REFUSED, f"Refused; nothing was placed. {cause}", cause=cause, outcomes=at_start)
        return
    now = story.clock()
    ready = [view for view in look.views if not view.failures]
    staged = at_start | {view.name: {**at_start[view.name], "staged_at": now} for view in ready}
    for view in look.views:
        if view.failures:  # only a standby that a person named may fail here
            word = story.rollout.without or {}
            text = f"Goes on without it, as {word.get('by')} said ({word.get('reason')}): {view.failure}"
            story.tell(text, host=view.name)
    story.advance(State.PLACING, f"Staged {revision} on {_names(ready)}.", outcomes=staged)


def _place(story: Story, managers: ManagerHosts, terms: Terms) -> None:
    """Make the staged file the partition file: on every standby, then on the master. Whatever fails, go back."""
    _require_trail()
    revision = story.rollout.revision
    look, is_fresh = managers.seen, True
    if look is None:  # taken up after a crash: see how far it came
        look, is_fresh = managers.look(), False
        if look.master is not None and look.master.digest == revision.digest:
            story.advance(State.RELOADING, f"{look.master.name} holds {revision} already; the standbys came before.")
            return
        failures = managers.each(managers.hosts, lambda host: host.stage(terms.data, digest=revision.digest))
        grave = {name: error for name, error in failures.items() if name not in terms.without}
        cause = _sentences(grave) or (no_master(look, place=terms.place) if look.master is None else "")
        if cause:
            _go_back(story, cause)
            return
    elif cause := withdrawn(story.rollout.subnet_id, mends=putting_back.is_put_back(story.rollout)):
        # Staging took a while; nothing is placed yet.
        story.advance(State.REFUSED, f"Refused; nothing was placed. {cause}", cause=cause)
        return
    placed: dict[str, dict[str, Any]] = {}
    for view in (*look.others, *look.masters):
        if view.failures and may_lack(view, terms.without):
            continue
        error = _place_one(story, view)
        if error is None:
            placed[view.name] = {"placed_at": story.clock(), "digest": revision.digest}
            continue
        failure = told(view.name, error)
        if is_fresh and not placed and isinstance(error, StaleGeneration):
            cause = overtaken(view.name, f"says “{error}”")
            story.advance(State.REFUSED, f"Refused; nothing was placed. {cause}", cause=cause)
            return
        if not may_lack(view, terms.without):
            already = f" It had been placed on {' and '.join(placed)} already." if placed else ""
            _go_back(story, f"{failure}{already}", outcomes={**placed, view.name: {"failure": failure}})
            return
        story.tell(f"Not placed; the rollout goes on without it. {failure}", host=view.name)
    left_out = [view.name for view in look.views if view.name not in placed]
    whom = f"Every manager host but {' and '.join(left_out)}" if left_out else "Every manager host"
    story.advance(State.RELOADING, f"{whom} holds the revision.", outcomes=placed)


def _place_one(story: Story, view: HostView) -> RemoteError | None:
    """Place the revision on one host; return what went wrong."""
    revision = story.rollout.revision
    try:
        view.host.place(digest=revision.digest, generation=story.rollout.generation or 0)
    except RemoteError as error:
        return error
    story.tell(f"Placed {revision} on {view.name}.", host=view.name)
    return None


def _reload(story: Story, managers: ManagerHosts, terms: Terms) -> None:
    """Make the master's OpenSM read the file now. If that cannot be done, nothing is known of the fabric."""
    look = managers.seen or managers.look()
    try:
        if look.master is None:
            raise Unseen(no_master(look, place=terms.place))
        mark = _reload_master(look.master)
    except Unseen as unseen:
        _wait(story, State.UNPROVEN, str(unseen))
        return
    story.advance(
        State.READING_BACK,
        f"OpenSM on {look.master.name} was told to read it; waiting until its sweep is over.",
        mark=mark,
        outcomes={look.master.name: {"reloaded_at": story.clock()}},
    )


def _read_back(story: Story, managers: ManagerHosts, terms: Terms, *, held: str = "") -> None:
    """Read every table behind the barrier, and end as what they say. With `held` nothing may be placed, and why."""
    rollout = story.rollout
    for followed in (False, True):
        try:
            judgement = terms.read_and_judge(
                managers, mark=rollout.mark or {}, now=story.clock(), revision=rollout.revision, still_mine=story.keep
            )
        except Unseen as unseen:
            look = managers.look()
            foreign = foreign_master(look, place=terms.place)
            if foreign:
                story.advance(State.STUCK, f"A person is needed. {foreign}", cause=f"{foreign} {_AFTERWARDS}")
                return
            if not followed and not held and _follow_master(story, look, terms):
                continue
            _wait(story, State.UNPROVEN, str(unseen), mark=rollout.mark)
            return
        _conclude(story, judgement, terms, held=held)
        return


def _follow_master(story: Story, look: Look, terms: Terms) -> bool:
    """Whether another registered SM has become master meanwhile, holds the revision, and was reloaded."""
    master = look.master
    if master is None or terms.is_marked(story.rollout.mark, master) or list(binding(master)):
        return False
    if master.digest != story.rollout.revision.digest:
        return False
    try:
        story.keep(mark=_reload_master(master))
    except Unseen:
        return False
    story.tell(f"{master.name} has become master; its OpenSM was told to read the file too.", host=master.name)
    return True


def _conclude(story: Story, judgement: Judgement, terms: Terms, *, held: str = "") -> None:
    """Write down what the tables say of the revision."""
    rollout, cause = story.rollout, judgement.cause
    found = terms.found(judgement)
    kept = evidence.kept(judgement, known=terms.accepted, registered=terms.registered.values())
    match judgement.verdict:
        case Verdict.PROVEN:
            counts = judgement.compared.counts
            text = (
                f"Proven: {counts['proven']} of {counts['ports']} ports hold exactly what they should; "
                f"{counts['absent']} absent, {counts['unreadable']} unreadable."
            )
            story.advance(State.PROVEN, text, cause="", evidence=kept, **found)
        case Verdict.CONTRARY if held:
            _wait(story, State.UNPROVEN, f"{cause} {rollout.parent} is put back once that is allowed: {held}", **found)
        case Verdict.CONTRARY:
            _go_back(story, cause, evidence=kept, **found)
        case Verdict.FOREIGN_SM:
            text = f"A person is needed. {cause}"
            story.advance(State.STUCK, text, cause=f"{cause} {_AFTERWARDS}", evidence=kept, **found)
        case Verdict.MISLED if story.rollout.tries >= MISLED_TRIES:
            text = f"A person is needed. {cause}"
            story.advance(State.STUCK, text, cause=f"{cause} {_AFTERWARDS}", evidence=kept, **found)
        case Verdict.OWED:
            _wait(story, State.DEGRADED, cause, **found)
        case _:
            mark = None if judgement.fresh_mark else story.rollout.mark
            _wait(story, State.UNPROVEN, cause, **{**found, "mark": mark})


def _look_again(story: Story, managers: ManagerHosts, terms: Terms) -> None:
    """Take up an UNPROVEN or DEGRADED rollout: heal what is owed on the hosts, then read and judge once more.

    A DEGRADED one whose lost host is still lost is left in peace: no reload, no reading. While the subnet is frozen,
    or out of write mode, nothing is placed and nothing reloaded; reading goes on.
    """
    rollout, revision = story.rollout, story.rollout.revision
    look = managers.look()
    foreign = foreign_master(look, place=terms.place)
    if foreign:
        story.advance(State.STUCK, f"A person is needed. {foreign}", cause=f"{foreign} {_AFTERWARDS}")
        return
    master = look.master
    if master is None:
        story.put_off(no_master(look, place=terms.place))
        return
    troubles = [sentence for view in look.views for sentence in binding(view)]
    owed = [view for view in (*look.others, master) if view.identity is not None and view.digest != revision.digest]
    is_same_master = terms.is_marked(rollout.mark, master)
    if story.state == State.DEGRADED and troubles and not owed and is_same_master:
        story.put_off(troubles[0])
        return
    held = withdrawn(rollout.subnet_id)
    if held and (owed or not is_same_master):
        names = _names(owed)
        behind = f"{names} does not hold revision {revision.number}"
        what = behind if owed else f"{master.name} was not reloaded as master yet"
        story.put_off(f"{what}, and nothing is placed or reloaded now. {held}")
        return
    if master in owed and master.digest not in terms.accepted:
        _go_back(story, f"Manager host {master.name}: its partition file was changed by hand during the rollout.")
        return
    try:
        if owed:
            _place_owed(story, managers, terms, owed)
        if not is_same_master or master in owed:
            mark = _reload_master(master)
            story.keep(mark=mark)
    except Unseen as unseen:
        story.put_off(str(unseen))
        return
    _read_back(story, managers, terms, held=held)


def _place_owed(story: Story, managers: ManagerHosts, terms: Terms, owed: Sequence[HostView]) -> None:
    """Place the revision on the hosts that do not hold it, under a generation of its own. Raises Unseen."""
    _require_trail()
    revision = story.rollout.revision
    generation = story.new_generation()
    failures = managers.each([view.name for view in owed], lambda host: host.stage(terms.data, digest=revision.digest))
    for view in owed:
        if view.name not in failures:
            try:
                view.host.place(digest=revision.digest, generation=generation)
            except RemoteError as error:
                failures[view.name] = error
            else:
                story.tell(f"Placed {revision} on {view.name} again.", host=view.name)
    if failures:
        raise Unseen(_sentences(failures))


def _require_trail() -> None:
    """No audit, no change: raise TrailUnavailable before a file is placed whose placing could not be told."""
    why_not = outage.refusal()
    if why_not:
        raise TrailUnavailable(why_not)


def _reload_master(master: HostView) -> dict[str, Any]:
    """Reload the master's OpenSM and return the mark as the row keeps it. Raises Unseen."""
    try:
        return {"host": master.name, **master.host.reload().to_json()}
    except RemoteError as error:
        raise Unseen(told(master.name, error)) from error


def _go_back(story: Story, cause: str, **fields: Any) -> None:
    parent = story.rollout.parent
    text = f"Going back to {parent}: {cause}"
    story.advance(State.RESTORING, text, **{**fields, "cause": cause, "contrary": cause, "mark": None})


def _wait(story: Story, state: Rollout.State, cause: str, **fields: Any) -> None:
    """Wait in `state` until the next look; one that waits there already is only put off."""
    if story.state == state:
        story.put_off(cause, **fields)
    else:
        words = "Placed, and not proven yet" if state == State.UNPROVEN else "Proven on the fabric, and one host owed"
        story.advance(state, f"{words}: {cause}", **{**fields, "cause": cause})


def _sentences(failures: dict[str, RemoteError]) -> str:
    return " ".join(told(name, error) for name, error in sorted(failures.items()))


def _names(views: Sequence[HostView]) -> str:
    return " and ".join(view.name for view in views)


_AFTERWARDS: Final = (
    "The files on the manager hosts hold this revision. Once the registered master is back, let go of this rollout "
    "with a reason and start the revision again."
)
