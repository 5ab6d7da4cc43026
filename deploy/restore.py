"""The way back: the parent's bytes on every manager host, the master first, read back as carefully as the way forth.

It ends as RESTORED, or as STUCK with a sentence that says exactly what a person must do. Placing and reading may be
run again at any time; whoever is not reachable is tried again a few times.
"""

from typing import Any, Final

from deploy import evidence
from deploy.look import Look, ManagerHosts, told
from deploy.models import Rollout
from deploy.proof import Judgement, Unseen, Verdict, some
from deploy.readiness import foreign_master, no_master, overtaken
from deploy.story import Story
from deploy.terms import Terms
from remote.errors import RemoteError, StaleGeneration

State = Rollout.State
TRIES: Final = 6  # with the pauses between them about four minutes: longer than a takeover with OpenSM's defaults


def put_parent_back(story: Story, managers: ManagerHosts, terms: Terms) -> None:
    """Restore the parent, or be put off, or say what a person must do."""
    parent = story.rollout.parent
    look = managers.look()
    failures = _place_everywhere(story, managers, look, terms)
    for name, error in failures.items():
        if isinstance(error, StaleGeneration):  # no later try can do better
            _need_person(story, f"{story.rollout.contrary} {overtaken(name, f'says “{error}”')} {_RELEASE}")
            return
    spared = terms.never_placed
    silent = [view.failure for view in look.views if view.identity is None and view.name not in spared]
    trouble = " ".join([*silent, *(told(name, error) for name, error in failures.items() if name not in spared)])
    try:
        if look.master is None:
            raise Unseen(foreign_master(look, place=terms.place) or no_master(look, place=terms.place))
        mark = look.master.host.reload()
        story.keep(mark={"host": look.master.name, **mark.to_json()})
        if trouble:
            raise Unseen(trouble)
        judgement = terms.read_and_judge(
            managers, mark=story.rollout.mark or {}, now=story.clock(), revision=parent, still_mine=story.keep
        )
    except (Unseen, RemoteError) as error:
        _try_later(story, terms, trouble or str(error))
        return
    _conclude(story, judgement, terms)


def _place_everywhere(story: Story, managers: ManagerHosts, look: Look, terms: Terms) -> dict[str, RemoteError]:
    """Place the parent's bytes on whichever host can be reached; return who failed and how."""
    parent, generation = terms.parent, story.rollout.generation or 0
    order = [view.name for view in (*look.masters, *look.others) if view.identity is not None]
    failures = managers.each(order, lambda host: host.stage(parent.data, digest=parent.digest))
    for name in order:
        if name not in failures:
            try:
                managers.hosts[name].place(digest=parent.digest, generation=generation)
            except RemoteError as error:
                failures[name] = error
    return failures


def _conclude(story: Story, judgement: Judgement, terms: Terms) -> None:
    """Write down whether the fabric is back where it was."""
    rollout, parent = story.rollout, terms.parent
    spared = terms.never_placed
    unlike = [
        view.name
        for view in judgement.reading.hosts.views
        if view.digest != parent.digest and not (view.name in spared and view.file is None)
    ]
    kept = evidence.kept(judgement, known=terms.accepted, registered=terms.registered.values())
    found: dict[str, Any] = {**terms.found(judgement), "evidence": kept}
    match judgement.verdict:
        case Verdict.PROVEN | Verdict.OWED | Verdict.OPEN if not unlike:
            note = f" Still open: {judgement.cause}" if judgement.cause else ""
            text = f"{_are_back(terms)} {_HELD}{note}"
            story.advance(State.RESTORED, text, cause=f"{rollout.contrary} {text}", **found)
        case Verdict.CONTRARY:
            _need_person(story, f"{_back(story, terms)} {_still(rollout, judgement)} {_BY_HAND}", **found)
        case Verdict.FOREIGN_SM:
            _need_person(story, f"{_back(story, terms)} {judgement.cause} {_RELEASE}", **found)
        case _:
            names = " and ".join(unlike)
            cause = judgement.cause or f"The partition file on {names} is not {parent.words}."
            _try_later(story, terms, cause, outcomes=terms.found(judgement)["outcomes"])


def _still(rollout: Rollout, judgement: Judgement) -> str:
    """What the way back finds, without telling again of ports that the cause names already."""
    contrary = [found for found in judgement.compared.discrepancies if found.is_contrary]
    fresh = [found.sentence for found in contrary if found.guid is None or found.guid not in rollout.contrary]
    fresh = [sentence for sentence in fresh if sentence not in rollout.contrary]
    if contrary and not fresh:
        return "That is still so."
    return f"Still: {some(fresh) if contrary else judgement.cause}"


def _try_later(story: Story, terms: Terms, cause: str, **fields: Any) -> None:
    rollout = story.rollout
    if rollout.tries + 1 < TRIES:
        story.put_off(f"{rollout.contrary} Not restored yet: {cause}", **fields)
        return
    _need_person(
        story,
        f"{rollout.contrary} Putting {rollout.parent} back failed {TRIES} times: {cause} Put {terms.parent.words} "
        f"(SHA-256 {terms.parent.digest[:12]}…) on each manager host, make the master reload it, and look at the "
        f"fabric. {_RELEASE}",
        **fields,
    )


def _need_person(story: Story, cause: str, **fields: Any) -> None:
    story.advance(State.STUCK, f"A person is needed. {cause}", cause=cause, **fields)


def _back(story: Story, terms: Terms) -> str:
    return f"{story.rollout.contrary} {_are_back(terms)}"


def _are_back(terms: Terms) -> str:
    number = terms.parent.number
    if terms.parent.is_adopted:
        return f"The hand-written file that was adopted as revision {number} is back on every manager host."
    return f"The files of revision {number} are back on every manager host."


_HELD: Final = "The fabric holds them again."  # sentences of their own: pages recognise each
_RELEASE: Final = "Then let go of this rollout with a reason."
_BY_HAND: Final = (
    "OpenSM does not mend a table that was changed behind its back: take that port's link down and up (or restart its "
    "server), take a new look, and see that the port holds what it should. Then let go of this rollout with a reason."
)
