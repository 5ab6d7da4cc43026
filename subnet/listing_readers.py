"""Read a listing: one reader a program, and a guess at which program printed a text.

No line is recognised by a NodeDescription, which anybody can choose; a line that fits nothing is an error with its
number, so that a cut or mixed-up text is not taken for a smaller fabric.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping

from subnet.errors import InvalidGUID, InvalidListing
from subnet.guid import GUID
from subnet.listing import Kind, ListedNode, ListedPort, Listing, Spelling, unicast

_TYPES = {"Ca": "CA", "Switch": "SWITCH", "Rt": "ROUTER"}
_NODE = re.compile(
    r'(Ca|Switch|Rt)\t(\d+) "[HSR]-([0-9a-f]{1,16})"\s+# "(.*)"(?: (base|enhanced) port 0 lid \d+ lmc \d+)?\s*\Z'
)
_SYSTEM = re.compile(r"sysimgguid=0x([0-9a-f]{1,16})\s*\Z")
_LINK = re.compile(
    r'\[(\d+)\](?:\[ext \d+\])?\(([0-9a-f]{1,16})\)\s+"([HSR])-([0-9a-f]{1,16})"\[(\d+)\]'
    r'(?:\[ext \d+\])?(?:\([0-9a-f]+\))?\s+# lid (\d+) lmc \d+ ".*" lid \d+ (\S+)\s*\Z'
)
_SWITCH_LINK = re.compile(r'\[\d+\](?:\[ext \d+\])?\s+"[HSR]-[0-9a-f]{1,16}"\[')
_ATTRIBUTE = re.compile(r"(vendid|devid|caguid|switchguid|rtguid)=")
_P_ROW = re.compile(
    r"(CA|SW|RT)\s+(\d+)\s+(\d+) (0x[0-9a-f]{16}) (\S+ \S+)"
    r"(?:\s+- (CA|SW|RT)\s+\d+\s+(\d+) (0x[0-9a-f]{16}) \((.*)\)|\s+'(.*)')\s*\Z"
)
_IBHOSTS = re.compile(r'Ca\s*: (0x[0-9a-f]{16}) ports (\d+) "(.*)"\s*\Z')
_IBDEV = re.compile(
    r"(?:[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f] )?(\S+) (?:\(.*\) )?(?:\S.* )?"
    r"port (\d+) (?:\(\w+\) )?==> (\S+) \((Up|Down)\)\s*\Z"
)
_RDMA_LINK = re.compile(r"link (\S+?)/(\d+) (.*?)\s*\Z")
_STAT_CA = re.compile(r"CA '(.*)'\s*\Z")
_STAT_PORT = re.compile(r"\s+Port (\d+):\s*\Z")
_STAT_FIELD = re.compile(r"\s+([A-Z][A-Za-z ]*): ?(.*?)\s*\Z")
_COMMENT = re.compile(r"\s*(#|---|\Z)")
_LONGEST = 16 * 1024 * 1024
_LONGEST_LINE = 4096


def read(text: str, kind: Kind | None = None) -> Listing:
    """What `text` says; `kind` says who printed it, else it is guessed. Raises InvalidListing with a line number."""
    if len(text) > _LONGEST:
        raise InvalidListing(f"The text has {len(text)} characters; {_LONGEST} is the most that is read.")
    long = next((at for at, line in enumerate(text.split("\n"), 1) if len(line) > _LONGEST_LINE), None)
    if long is not None and not text.lstrip().startswith(("[", "{")):
        raise InvalidListing(f"Line {long} has over {_LONGEST_LINE} characters; no program here prints such a line.")
    return _READERS[kind or guess_kind(text)](text.replace("\r\n", "\n"))


def guess_kind(text: str) -> Kind:
    """Which program printed `text`, by its first line that fits one; raise InvalidListing when none does."""
    for line in text.split("\n"):
        for kind, pattern in _MARKS.items():
            if pattern.match(line):
                return kind
    raise InvalidListing(
        "This is not the output of a program that can be read here. Say which with --kind: "
        + ", ".join(kind.value for kind in Kind)
        + "."
    )


def _ibnetdiscover(text: str) -> Listing:
    nodes: list[ListedNode] = []
    ports: list[ListedPort] = []
    system: GUID | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#") or _ATTRIBUTE.match(line):
            continue
        if found := _SYSTEM.match(line):
            system = _hex(found[1])
        elif found := _NODE.match(line):
            node = _hex(found[3])
            if node is None:
                raise InvalidListing(f"Line {number}: a node without a GUID.")
            nodes.append(ListedNode(node, _TYPES[found[1]], int(found[2]), found[4], system, found[5]))
            system = None
        elif nodes and (found := _LINK.match(line)):
            if nodes[-1].node_type == "CA":
                ports.append(_linked(nodes[-1], found))
        elif not (nodes and _SWITCH_LINK.match(line)):
            raise InvalidListing(f"Line {number} is none of ibnetdiscover's: “{line.strip()[:80]}”.")
    if not nodes:
        raise InvalidListing("ibnetdiscover printed no node: it failed, or this is not its output.")
    return Listing(Kind.IBNETDISCOVER, tuple(nodes), tuple(ports), failed=_why_failed(nodes, ports))


def _linked(node: ListedNode, found: re.Match[str]) -> ListedPort:
    leaf = _hex(found[4])
    return ListedPort(
        guid=_hex(found[2]), node_guid=node.guid, number=int(found[1]), link_layer="InfiniBand",
        lid=unicast(int(found[6])), rate=found[7], description=node.description,
        leaf=(leaf, int(found[5])) if leaf is not None and found[3] == "S" else None,
    )  # fmt: skip


def _ibnetdiscover_p(text: str) -> Listing:
    """Each line is one port with what it is cabled to. It names port GUIDs only; switches' ports share one."""
    ports: list[ListedPort] = []
    seen = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if _COMMENT.match(line):
            continue
        found = _P_ROW.match(line)
        if found is None:
            raise InvalidListing(f"Line {number} is none of ibnetdiscover -p's: “{line.strip()[:80]}”.")
        seen += 1
        if found[1] != "CA":
            continue
        # “'here' - 'there'”: both may hold quotes and dashes, so only a text that splits in one way is believed.
        names = (found[9] or "").strip().strip("'").split("' - '")
        leaf = GUID(found[8]) if found[6] == "SW" else None
        ports.append(
            ListedPort(
                guid=_hex(found[4][2:]), number=int(found[3]), link_layer="InfiniBand", lid=unicast(int(found[2])),
                rate=found[5].replace(" ", ""), leaf=(leaf, int(found[7])) if leaf else None,
                description=(names[0] if len(names) == 2 else "") or found[10] or "",
            )
        )  # fmt: skip
    if not seen:
        raise InvalidListing("ibnetdiscover -p printed no port: it failed, or this is not its output.")
    linked = [port for port in ports if port.leaf is not None]
    failed = None if linked or seen > 1 else _LONE
    return Listing(Kind.IBNETDISCOVER_P, ports=tuple(ports), failed=failed)


_LONE = (
    "The scan began at a port that sees nothing but itself: an isolated or Ethernet port. It says nothing about the "
    "fabric; what is known stays as it is. Scan from a port with a link."
)


def _why_failed(nodes: list[ListedNode], ports: list[ListedPort]) -> str | None:
    return _LONE if len(nodes) == 1 and not ports else None


def _ibhosts(text: str) -> Listing:
    nodes = []
    for number, line in _lines(text):
        found = _IBHOSTS.match(line)
        guid = _hex(found[1][2:]) if found else None
        if found is None or guid is None:
            raise InvalidListing(f"Line {number} is none of ibhosts': “{line.strip()[:80]}”.")
        nodes.append(ListedNode(guid, "CA", int(found[2]), found[3]))
    finding = "Every GUID that ibhosts prints is a node GUID. A partition takes port GUIDs; see what each stands for."
    return Listing(Kind.IBHOSTS, tuple(nodes), findings=(finding,) if nodes else ())


def _ibstat(text: str) -> Listing:
    ports: list[ListedPort] = []
    device, node, inside = "", None, False
    values: dict[str, str] = {}

    def close() -> None:
        if inside:
            ports.append(_stat_port(device, node, values))

    for number, line in _lines(text):
        if found := _STAT_CA.match(line):
            close()
            device, node, inside, values = found[1], None, False, {}
        elif device and (found := _STAT_PORT.match(line)):
            close()
            inside, values = True, {"Port": found[1]}
        elif device and (found := _STAT_FIELD.match(line)):
            values[found[1]] = found[2]
            if found[1] == "Node GUID":
                node = _hex(found[2].removeprefix("0x"))
        else:
            raise InvalidListing(f"Line {number} is none of ibstat's: “{line.strip()[:80]}”.")
    close()
    return Listing(Kind.IBSTAT, ports=tuple(ports))


def _stat_port(device: str, node: GUID | None, values: Mapping[str, str]) -> ListedPort:
    layer = values.get("Link layer")
    is_infiniband = layer == "InfiniBand"
    return ListedPort(
        # An Ethernet port's GUID here is zero or made of its MAC: no InfiniBand port has it.
        guid=_hex(values.get("Port GUID", "").removeprefix("0x")) if is_infiniband else None,
        node_guid=node, number=int(values["Port"]), device=device, link_layer=layer,
        state=values.get("State", "").upper(), phys_state=values.get("Physical state", ""),
        lid=_lid(values.get("Base lid")), sm_lid=_lid(values.get("SM lid")), rate=values.get("Rate", ""),
    )  # fmt: skip


def _rdma_link(text: str) -> Listing:
    if text.lstrip().startswith(("[", "{")):
        return Listing(Kind.RDMA_LINK, ports=tuple(_rdma_objects(text, 1)))
    ports: list[ListedPort] = []
    for number, line in _lines(text):
        if line.startswith("["):
            ports.extend(_rdma_objects(line, number))
            continue
        found = _RDMA_LINK.match(line)
        words = found[3].split() if found else []
        if found is None or len(words) % 2:
            raise InvalidListing(f"Line {number} is none of rdma link's: “{line.strip()[:80]}”.")
        said = dict(zip(words[::2], words[1::2], strict=True))
        layer = "InfiniBand" if "subnet_prefix" in said and "lid" in said else "Ethernet"
        ports.append(_rdma_port(found[1], int(found[2]), said, layer))
    return Listing(Kind.RDMA_LINK, ports=tuple(ports))


def _rdma_objects(text: str, number: int) -> Iterator[ListedPort]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidListing(f"Line {number}: this is not the JSON of rdma link: {str(error)[:80]}.") from error
    for item in found if isinstance(found, list) else [found]:
        name = item.get("ifname") if isinstance(item, dict) else None
        if not isinstance(name, str):
            raise InvalidListing(f"Line {number}: an entry of rdma link's JSON has no ifname.")
        device, _, port = name.partition("/")  # older tools write the port into the name
        text_of_port = port or str(item.get("port", ""))
        said = {key: str(value) for key, value in item.items()}
        # Older tools leave prefix and LID out of the JSON of every port: that says nothing about the link layer.
        layer = "InfiniBand" if "subnet_prefix" in said and "lid" in said else None
        yield _rdma_port(device, int(text_of_port) if text_of_port.isdecimal() else None, said, layer)


def _rdma_port(device: str, number: int | None, said: Mapping[str, str], layer: str | None) -> ListedPort:
    prefix = said.get("subnet_prefix")
    return ListedPort(
        device=device, number=number, link_layer=layer, state=said.get("state", ""),
        phys_state=said.get("physical_state", ""), lid=_lid(said.get("lid")), sm_lid=_lid(said.get("sm_lid")),
        subnet_prefix=_hex(prefix.replace(":", "")) if prefix else None, netdev=said.get("netdev", ""),
    )  # fmt: skip


def _ibdev2netdev(text: str) -> Listing:
    """Names of interfaces, as hints; the state beside them is the interface's, and the link layer is not said."""
    ports = []
    for number, line in _lines(text):
        found = _IBDEV.match(line)
        if found is None:
            raise InvalidListing(f"Line {number} is none of ibdev2netdev's: “{line.strip()[:80]}”.")
        ports.append(ListedPort(device=found[1], number=int(found[2]), netdev=found[3]))
    return Listing(Kind.IBDEV2NETDEV, ports=tuple(ports))


def _node_descriptions(text: str) -> Listing:
    """One description a line; between | marks when blanks around it count, and then anything may follow."""
    found = []
    for _, line in _lines(text):
        marked = re.match(r"\|(.*)\|", line)
        found.append(marked[1] if marked else line)
    return Listing(Kind.NODE_DESCRIPTIONS, descriptions=tuple(found))


def _guids(text: str) -> Listing:
    spellings = []
    for _, line in _lines(text):
        spelling = line.split("\t")[0]
        try:
            spellings.append(Spelling(spelling, GUID(spelling)))
        except InvalidGUID as error:
            spellings.append(Spelling(spelling, None, str(error)))
    return Listing(Kind.GUIDS, spellings=tuple(spellings))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that say something, with their numbers."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not _COMMENT.match(line):
            yield number, line


def _hex(digits: str) -> GUID | None:
    """The GUID of up to 16 bare hex digits, as these programs print them; None for zero and all ones."""
    try:
        return GUID(f"0x{digits}")
    except InvalidGUID:
        return None


def _lid(text: str | None) -> int | None:
    """A decimal LID, if a port can have it."""
    return unicast(int(text)) if text is not None and re.fullmatch(r"[0-9]{1,6}", text) else None


_READERS: Mapping[Kind, Callable[[str], Listing]] = {
    Kind.IBNETDISCOVER: _ibnetdiscover,
    Kind.IBNETDISCOVER_P: _ibnetdiscover_p,
    Kind.IBSTAT: _ibstat,
    Kind.RDMA_LINK: _rdma_link,
    Kind.IBHOSTS: _ibhosts,
    Kind.IBDEV2NETDEV: _ibdev2netdev,
    Kind.NODE_DESCRIPTIONS: _node_descriptions,
    Kind.GUIDS: _guids,
}
_MARKS = {
    Kind.IBNETDISCOVER: re.compile(r"# Topology file:|vendid=0x"),
    Kind.IBNETDISCOVER_P: _P_ROW,
    Kind.IBSTAT: _STAT_CA,
    Kind.RDMA_LINK: re.compile(r'link \S+/\d+ |\[\s*\{.*"ifname"|\[\s*\Z'),
    Kind.IBHOSTS: _IBHOSTS,
    Kind.IBDEV2NETDEV: _IBDEV,
    Kind.GUIDS: re.compile(r"\s*(0[xX])?[0-9a-fA-F:.-]{16,60}\s*(\t|\Z)"),
}
