"""A stand-in for pyverbs, as somebody might preload one: it says yes to everything and moves nothing.

With STAND_IN_OPENS it also opens the kernel's device file, as a careful forger would. It runs in a guest, under the
guest's Python; FabricUI must never take what it gives for RDMA.
"""

import collections
import os
import pathlib
import struct
import sys
import types

SYSFS = "/sys/class/infiniband"
COMPLETED = collections.deque()


class PyverbsError(Exception):
    error_code = 0


class Values:
    """An object that has whatever it is given."""

    def __init__(self, *_, **values):
        self.__dict__.update(values)


class Context:
    def __init__(self, name):
        self.name = name
        if os.environ.get("STAND_IN_OPENS"):
            self.kept = os.open("/dev/infiniband/uverbs0", os.O_RDWR)

    def query_device(self):
        text = pathlib.Path(f"{SYSFS}/{self.name}/node_guid").read_text()
        guid = bytes.fromhex(text.strip().replace(":", ""))
        return Values(node_guid=struct.unpack("=Q", guid)[0], max_qp_wr=1024, max_cqe=65536, max_qp_rd_atom=16)

    def query_port(self, number):
        return Values(active_mtu=5, lid=0, bad_pkey_cntr=0)


class CQEX:
    def __init__(self, context, attributes):
        self.wr_id = self.status = 0

    def start_poll(self, attributes):
        if not COMPLETED:
            return 2
        self.wr_id = COMPLETED.popleft()
        return 0

    def end_poll(self):
        pass


class QP:
    def __init__(self, pd, made, first):
        self.qp_num = 17

    def to_rtr(self, attributes):
        pass

    to_rts = to_rtr

    def query(self, mask):
        return Values(qp_state=3), None

    def post_send(self, wr):
        while wr.next_wr is not None:
            wr = wr.next_wr
        COMPLETED.append(wr.wr_id)


class SendWR(Values):
    def set_wr_rdma(self, rkey, address):
        pass


class Enums(types.ModuleType):
    """Every name of an enum is 0."""

    def __getattr__(self, name):
        if name.startswith("IBV_"):
            return 0
        raise AttributeError(name)


def module(name, **members):
    made = types.ModuleType(f"pyverbs.{name}")
    made.__dict__.update(members)
    sys.modules[made.__name__] = made


module("device", Context=Context)
module("pd", PD=Values)
module("mr", MR=lambda *_, **__: Values(lkey=1, rkey=1))
module("cq", CQEX=CQEX, CqInitAttrEx=Values, PollCqAttr=Values)
module("qp", QP=QP, QPCap=Values, QPInitAttr=Values, QPAttr=Values)
module("wr", SGE=Values, SendWR=SendWR)
module("addr", AHAttr=Values, GlobalRoute=Values, GID=Values)
module("pyverbs_error", PyverbsError=PyverbsError)
sys.modules["pyverbs.enums"] = Enums("pyverbs.enums")
