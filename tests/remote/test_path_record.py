"""The verb path_record: parsed strictly, refused when malformed, and asked of two real OpenSM on a simulated fabric."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from remote.errors import OpenSMNotRunning, VerbFailed, VerbRefused
from remote.path_record import Answer, PathAnswers, parse_answer
from remote.shell import Reply
from subnet.guid import GUID
from tests.remote.mini_fabric import MiniFabric, mini_fabric, port_guid
from tests.remote.sites import Host, run_wrapper, sha256, wait_until
from tests.remote.test_manager_host import host

ONE, OTHER = GUID("0x0002c90300000001"), GUID("0x0002c90300000002")
HEAD = "port_guid=0x0002c90300000009\ndefault_entry=0xffff\nsm_lid=1\nsm_guid=0x0002c90300000009\n"


class TestAnswers:
    def test_each_kind_of_answer_is_a_value(self) -> None:
        found = parse_answer(f"{ONE} {OTHER} found 0x8010 3 4")
        assert (found.answer, found.pkey, found.slid, found.dlid) == (Answer.FOUND, "0x8010", 3, 4)
        assert parse_answer(f"{ONE} {OTHER} refused").answer is Answer.REFUSED
        lost = parse_answer(f"{ONE} {OTHER} unanswered status_0x0700")
        assert (lost.answer, lost.why) == (Answer.UNANSWERED, "status 0x0700")

    @pytest.mark.parametrize(
        "line",
        ["", "found", f"{ONE} {OTHER}", f"{ONE} {OTHER} found", f"{ONE} {OTHER} found 0x8010 3 4 5",
         f"{ONE} {OTHER} refused ", f"{ONE} refused", f"{ONE} {OTHER} FOUND 0x8010 3 4"],
    )  # fmt: skip
    def test_anything_else_is_refused(self, line: str) -> None:
        with pytest.raises(ValueError, match="no answer about a path"):
            parse_answer(line)

    def test_answers_about_other_pairs_than_asked_are_no_answer(self) -> None:
        swapped = host(Reply(0, f"{HEAD}path={OTHER} {ONE} refused\n".encode(), b""))
        with pytest.raises(VerbFailed, match="others than were asked"):
            swapped.path_records([(ONE, OTHER)], timeout_s=5)
        fewer = host(Reply(0, f"{HEAD}path={ONE} {OTHER} refused\n".encode(), b""))
        with pytest.raises(VerbFailed, match="others than were asked"):
            fewer.path_records([(ONE, OTHER), (OTHER, ONE)], timeout_s=5)

    @pytest.mark.parametrize(("entry", "is_full"), [("0xffff", True), ("0x7fff", False), ("", False)])
    def test_only_a_full_member_of_default_is_believed(self, entry: str, is_full: bool) -> None:
        assert PathAnswers(ONE, entry, 1, str(ONE), ()).is_asker_full is is_full

    @pytest.mark.parametrize("count", [0, 65])
    def test_none_and_too_many_are_refused_before_anything_is_sent(self, count: int) -> None:
        with pytest.raises(ValueError, match="1 to 64 pairs"):
            host(Reply(0, HEAD.encode(), b"")).path_records([(ONE, OTHER)] * count, timeout_s=5)


@pytest.mark.parametrize(
    "words",
    ["path_record 5", f"path_record {ONE}:{OTHER}", f"path_record 5 {ONE}", f"path_record 5 {ONE}:{OTHER}0",
     f"path_record 5 {ONE}:{ONE[:-1]}g", f"path_record 5 {ONE[2:]}00:{OTHER}", f"path_record x {ONE}:{OTHER}",
     "path_record 5 " + " ".join([f"{ONE}:{OTHER}"] * 65)],
)  # fmt: skip
def test_the_wrapper_takes_only_pairs_of_guids(prepared: Host, words: str) -> None:
    done = run_wrapper(prepared, words)
    assert done.returncode == 64, done.stderr
    assert done.stdout == b""


MASTER, STANDBY, ASIDE = 0, 5, 2  # HCAs
ACME, BERT, LIMITED = (1, 3), 4, 2


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, key_file: Path) -> Iterator[tuple[MiniFabric, Host, Host, Host]]:
    """Two OpenSM; Acme's partition with two ports, Bert's with one; a third host without an SM, limited in Default."""
    with mini_fabric(tmp_path_factory.mktemp("paths")) as fabric:
        public_key = key_file.with_suffix(".pub")
        hosts = [
            fabric.manager_host(name, hca, public_key) for name, hca in (("m1", MASTER), ("m2", STANDBY), ("m3", ASIDE))
        ]
        sm_ports = f" {port_guid(MASTER)}=full,\n {port_guid(STANDBY)}=full,"
        file = (
            f"Default=0x7fff, ipoib, defmember=limited :\n ALL=limited,\n ALL_SWITCHES=full,\n{sm_ports}\n SELF=full;\n"
            f"acme=0x0010, defmember=full : {port_guid(1)}, {port_guid(3)};\n"
            f"bert=0x0020, defmember=full : {port_guid(BERT)};\n"
        )
        for host in hosts:
            host.partitions.write_text(file)
        fabric.start_opensm(hosts[0], MASTER, priority=14)
        wait_until(lambda: hosts[0].log.exists() and "SUBNET UP" in hosts[0].log.read_text(), within_s=60)
        fabric.start_opensm(hosts[1], STANDBY, priority=1)
        wait_until(lambda: hosts[1].log.exists() and "STANDBY" in hosts[1].log.read_text(), within_s=60)
        yield fabric, hosts[0], hosts[1], hosts[2]


def guid(hca: int) -> GUID:
    return GUID(port_guid(hca))


@pytest.mark.contract
@pytest.mark.xdist_group("path-records")
class TestRealSA:
    PAIRS = ((guid(1), guid(3)), (guid(1), guid(BERT)), (guid(BERT), guid(1)), (guid(MASTER), guid(BERT)))

    @pytest.mark.parametrize("asker", [1, 2], ids=["master", "standby"])
    def test_a_pair_of_one_partition_has_a_path_and_strangers_have_none(self, site, asker: int) -> None:
        told = site[asker].locally().path_records(self.PAIRS, timeout_s=20)
        assert told.is_asker_full
        assert told.sm_guid == port_guid(MASTER)
        assert [answer.answer for answer in told.answers] == [
            Answer.FOUND, Answer.REFUSED, Answer.REFUSED, Answer.FOUND,
        ]  # fmt: skip
        same, _, _, default = told.answers
        assert int(same.pkey, 16) & 0x7FFF == 0x0010
        assert int(default.pkey, 16) & 0x7FFF == 0x7FFF
        assert 0 < same.slid != same.dlid > 0

    def test_a_limited_asker_is_refused_even_what_exists_and_says_that_it_is_limited(self, site) -> None:
        told = site[3].locally().path_records(self.PAIRS, timeout_s=20)
        assert told.default_entry == "0x7fff"
        assert not told.is_asker_full
        assert [answer.answer for answer in told.answers[:2]] == [Answer.REFUSED, Answer.REFUSED]

    def test_it_agrees_with_saquery(self, site) -> None:
        fabric, master = site[0], site[1]
        told = master.locally().path_records(self.PAIRS[:2], timeout_s=20)
        for answer, (source, target) in zip(told.answers, self.PAIRS[:2], strict=True):
            prefix = 0xFE80000000000000
            gids = [f"{prefix:016x}{int(str(one), 16):016x}" for one in (source, target)]
            words = [":".join(gid[i : i + 4] for i in range(0, 32, 4)) for gid in gids]
            said = fabric.ask(MASTER, "saquery", "-p", f"--sgid={words[0]}", f"--dgid={words[1]}")
            assert ("dlid" in said) == (answer.answer is Answer.FOUND)

    def test_a_port_that_nobody_has_is_refused(self, site) -> None:
        told = site[1].locally().path_records([(guid(1), GUID("0x00000000deadbeef"))], timeout_s=20)
        assert told.answers[0].answer is not Answer.FOUND

    def test_nothing_is_left_and_digests_are_pinned(self, site) -> None:
        master = site[1]
        assert sha256((master.conf / "fabricui-tables").read_bytes()) == master.reader_digest
        master.locally().path_records(self.PAIRS[:1], timeout_s=20)
        assert not [path for path in site[0].litter() if path.parent == master.conf / "run"]


def test_a_port_without_a_library_says_so(prepared: Host) -> None:
    with pytest.raises((VerbFailed, OpenSMNotRunning)):
        prepared.locally().path_records([(ONE, OTHER)], timeout_s=5)
    with pytest.raises(VerbRefused):
        prepared.locally()._call("path_record", "5", "nonsense", timeout_s=5)
