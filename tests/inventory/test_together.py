"""What conversations want at the same time is done once for all of them; each gets what is its own."""

import threading

import pytest
from django.db import OperationalError

from audit import outage
from audit.actions import Action
from audit.chain import verify
from audit.models import Event
from audit.request_id import acting_from, current_address, current_request_id, request_id
from inventory.models import Port, Server, ServerCredential
from inventory.operations import enrolling, reports
from inventory.report import parse_report
from inventory.together import MOST, Wish, all_or_each, answer, answer_all, in_the_name_of_now
from tests.inventory.reports import GUID_A, GUID_B, enrolled, outcomes, port, said


class Work:
    """Work that notes what it was given at once."""

    def __init__(self):
        self.batches = []

    def __call__(self, asked):
        self.batches.append(list(asked))
        return [ValueError(text) if text.endswith("!") else text.upper() for text in asked]


def conversation(work, *texts):
    """Wants each of `texts`, one after the other; its answer is what it got."""
    got = []
    for text in texts:
        try:
            got.append((yield Wish(work, text, frozenset(text[:1]))))
        except ValueError as error:
            got.append(f"caught {error}")
    return got


def test_one_alone_gets_its_answer():
    work = Work()
    assert answer(conversation(work, "a", "b")) == ["A", "B"]
    assert work.batches == [["a"], ["b"]]


def test_those_that_want_the_same_are_worked_for_together_and_each_gets_its_own():
    work, other = Work(), Work()
    told = answer_all([conversation(work, "a", "x"), conversation(work, "b!"), conversation(other, "c"), empty()])
    assert told == [["A", "X"], ["caught b!"], ["C"], "nothing"]
    assert (work.batches, other.batches) == ([["a", "b!"], ["x"]], [["c"]])


def empty():
    return "nothing"
    yield


def test_two_that_share_a_name_are_never_worked_for_together_and_keep_their_order():
    work = Work()
    told = answer_all([conversation(work, text) for text in ("a", "b1", "c", "b2", "b3")])
    assert told == [["A"], ["B1"], ["C"], ["B2"], ["B3"]]
    assert work.batches == [["a", "b1", "c"], ["b2"], ["b3"]]


def test_what_the_work_raises_everybody_gets_and_a_conversation_that_fails_stops_no_other():
    def fails(asked):
        raise LookupError(asked[0])

    def short(asked):
        return asked[1:]

    told = answer_all([conversation(fails, "a"), conversation(fails, "b"), conversation(short, "c"), empty()])
    assert [type(one).__name__ for one in told] == ["LookupError", "LookupError", "RuntimeError", "str"]
    with pytest.raises(LookupError, match="a"):
        answer(conversation(fails, "a"))


def test_there_is_an_end_to_how_many():
    work = Work()
    answer_all([conversation(work, chr(200 + number)) for number in range(MOST + 3)])
    assert [len(batch) for batch in work.batches] == [MOST, 3]


def test_a_conversation_goes_on_in_the_name_of_the_request_that_began_it():
    def who():
        told = [(current_request_id(), current_address())]
        yield Wish(Work(), "a", frozenset())
        told.append((current_request_id(), current_address()))
        try:
            yield Wish(Work(), "b!", frozenset())
        except ValueError:
            told.append((current_request_id(), current_address()))
        return told

    begun = []
    for number in (1, 2):
        with request_id(f"request {number}"), acting_from(f"10.0.0.{number}"):
            begun.append(in_the_name_of_now(who()))
    assert answer_all(begun) == [[(f"request {number}", f"10.0.0.{number}")] * 3 for number in (1, 2)]
    assert (current_request_id(), current_address()) == ("", "")


# --- reports and enrolments that share a transaction -----------------------------------------------------------------


def asked(server, *ports, address="", **changes):
    report = parse_report(said(*ports, **{"hostname": server.hostname, **changes}))
    with acting_from(address), request_id(f"of {server}"):
        return reports.Asked(server.pk, report)


@pytest.mark.django_db
def test_reports_that_share_a_transaction_have_an_event_each_with_its_own_address(subnet):
    servers = [enrolled(subnet, f"srv-{number}")[0] for number in range(3)]
    before = Event.objects.count()
    guids = [f"0x0002c903000{number}0001" for number in (1, 2, 3)]
    told = reports._register_all(
        [asked(server, port(guid), address=f"10.0.0.{guid[-5]}") for server, guid in zip(servers, guids, strict=True)]
    )
    assert [outcomes(one) for one in told] == [["new"]] * 3
    assert [port.server for port in Port.objects.order_by("guid")] == servers
    events = Event.objects.filter(number__gt=before).order_by("number")
    assert [(event.subject_label, event.address, event.request_id) for event in events] == [
        (f"srv-{number}", f"10.0.0.{number + 1}", f"of srv-{number}") for number in range(3)
    ]
    assert verify().is_sound


@pytest.mark.django_db
def test_one_that_cannot_be_written_stops_no_other_and_leaves_nothing(subnet, monkeypatch):
    good, bad = (enrolled(subnet, name)[0] for name in ("good", "bad"))
    judge, events = reports.judge, Event.objects.count()

    def judge_but_one(report, known):
        if known.server == bad:
            raise ZeroDivisionError
        return judge(report, known)

    monkeypatch.setattr(reports, "judge", judge_but_one)
    first, second = reports._register_all([asked(good, port(GUID_A)), asked(bad, port(GUID_B))])
    assert outcomes(first) == ["new"]
    assert isinstance(second, ZeroDivisionError)
    assert [port.guid for port in Port.objects.all()] == [GUID_A]
    assert Event.objects.count() == events + 1
    assert Server.objects.get(pk=bad.pk).reported_at is None


@pytest.mark.django_db
def test_new_changed_and_unchanged_reports_in_one_transaction(subnet):
    new, changed, alike = (enrolled(subnet, name)[0] for name in ("new", "changed", "alike"))
    third = "0x0002c90300030001"
    reports._register_all([asked(changed, port(GUID_A)), asked(alike, port(GUID_B))])
    before = Event.objects.count()
    told = reports._register_all(
        [asked(new, port(third)), asked(changed, port(GUID_A, state="DOWN")), asked(alike, port(GUID_B))]
    )
    assert [outcomes(one) for one in told] == [["new"], ["changed"], ["unchanged"]]
    assert Event.objects.count() == before + 2
    last = [Server.objects.get(pk=server.pk).reported_at for server in (new, changed, alike)]
    assert len(set(last)) == 1


def test_what_a_report_touches_is_its_server_and_every_guid():
    report = parse_report(said(port(GUID_A), port(None, device="mlx5_1")))
    assert reports.Asked(7, report, "", "").names() == {7, GUID_A, GUID_A[:-1] + "0"}


@pytest.mark.django_db
def test_a_token_lets_in_as_many_as_it_says_when_they_come_together(subnet):
    from datetime import timedelta

    from inventory.operations import create_enrolment_token
    from inventory.operations.enrolment import digest_of
    from tests.inventory.reports import OLGA

    token = create_enrolment_token(subnet=subnet, name="r", uses=2, lifetime=timedelta(hours=1), actor=OLGA)
    told = enrolling._enrol_all(
        [enrolling.Asked(digest_of(token), f"srv-{digit}", digit * 64, "b", None) for digit in "0123"]
    )
    assert [getattr(one, "hostname", type(one).__name__) for one in told] == [
        "srv-0", "srv-1", "EnrolmentRefused", "EnrolmentRefused"
    ]  # fmt: skip
    assert ServerCredential.objects.count() == 2


@pytest.mark.parametrize(("said", "times"), [("database is locked", 1), ("server closed the connection", 2)])
def test_a_database_that_is_away_is_nobodys_fault_and_asked_once_more_at_most(db, caplog, said, times):
    tried = []

    def change(asked):
        tried.append(len(asked))
        raise OperationalError(said)

    told = all_or_each(change, ["a", "b", "c"])
    assert [str(one) for one in told] == [said] * 3
    assert tried == [3] * times  # never each alone: every one of them would wait as long again
    assert f"does not answer 3 requests: {said}" in caplog.text


@pytest.mark.pg
def test_a_lock_that_does_not_come_is_waited_for_once_for_all(transactional_db, subnet):
    from django.db import connection, transaction

    from audit.record import record
    from audit.values import SYSTEM, Subject

    tried = []

    def change(asked):
        tried.append(len(asked))
        record(action=Action.SUBNET_FREEZE, actor=SYSTEM, subject=Subject(kind="subnet", key="x", label="x"))
        return asked

    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '100ms'")
    held, released = threading.Event(), threading.Event()

    def hold_the_head():
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM audit_chainhead FOR UPDATE")
            held.set()
            released.wait(timeout=20)
        connection.close()

    holder = threading.Thread(target=hold_the_head)
    holder.start()
    try:
        assert held.wait(timeout=20)
        told = all_or_each(change, ["a", "b"])
    finally:
        released.set()
        holder.join()
    assert tried == [2]
    assert all(isinstance(one, OperationalError) for one in told)  # no outage of the trail
    assert not outage.known()
    assert all_or_each(change, ["a", "b"]) == ["a", "b"]


@pytest.mark.pg
def test_a_connection_that_was_lost_since_the_last_time_is_made_anew(transactional_db):
    from django.db import connection

    def change(asked):
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return [text.upper() for text in asked]

    connection.ensure_connection()
    connection.connection.close()  # as a database that was started anew leaves it
    assert all_or_each(change, ["a", "b"]) == ["A", "B"]


@pytest.mark.pg
def test_a_port_that_another_process_made_meanwhile_is_a_lost_race_and_no_error_of_the_driver(transactional_db, subnet):
    from django.db import IntegrityError, transaction

    from inventory.inserting import insert
    from inventory.models import Port

    Port.objects.create(subnet=subnet, guid=GUID_A, number=1)
    with pytest.raises(IntegrityError), transaction.atomic():
        insert(Port, [Port(subnet=subnet, guid=GUID_B, number=1), Port(subnet=subnet, guid=GUID_A, number=1)])
    assert Port.objects.get().guid == GUID_A
