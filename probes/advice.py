"""What to do about a failed run: one sentence an outcome, for the people who see it on a page. Pure."""

from probes.terms import Outcome

_ADVICE = {
    Outcome.OK: "",
    Outcome.TCP_OK: "",
    Outcome.NO_RDMA: (
        "Install the distribution's bindings there (Debian: apt install python3-pyverbs ibverbs-providers) and name "
        "its Python in install-probe --python; a pyenv or conda Python does not see them."
    ),
    Outcome.NO_DEVICE: (
        "Check that the HCA is seated and its driver loaded (lspci, dmesg, /sys/class/infiniband), and that the device "
        "or interface is still called as ordered."
    ),
    Outcome.UNSUPPORTED: (
        "Only reliable connections between two ports of one link layer are probed; choose another port, or order no "
        "P_Key on Ethernet and one on InfiniBand."
    ),
    Outcome.PORT_DOWN: (
        "Check cable and switch port (ibstat). A port in INIT waits for a subnet manager; one in DOWN has no link."
    ),
    Outcome.NO_ADDRESS: (
        "On InfiniBand wait for the subnet manager to give the port a LID; on Ethernet give the port's interface an IP "
        "address, so that it has a RoCE v2 GID, and of the same family at both ends."
    ),
    Outcome.NO_COMMON_PKEY: (
        "Make both ports members of the partition, at least one of them full, and wait until the rollout is PROVEN."
    ),
    Outcome.MTU_MISMATCH: (
        "Set one MTU on both ports and on every switch between them; small packets pass and large ones do not."
    ),
    Outcome.MEMLOCK: (
        "Raise the probe account's limit: “fabricui-probe - memlock unlimited” in /etc/security/limits.d, or "
        "LimitMEMLOCK=infinity for sshd, or order a profile with a smaller buffer."
    ),
    Outcome.BUSY: (
        "It is tried again by itself. If another probe holds the port for long, look who (lsof); if others send much "
        "for long, raise the scope's share, or probe at another time."
    ),
    Outcome.UNREACHABLE: "Check that the server is up and its sshd reachable from the probe worker.",
    Outcome.ACCESS_REFUSED: "Put the line that install-probe prints into the probe account's authorized_keys.",
    Outcome.HOST_KEY_MISMATCH: "If the server was set up anew, pin its new host key; else find out what answers there.",
    Outcome.PROGRAM_MISMATCH: "Run install-probe of this FabricUI version on the server.",
    Outcome.STUB_DEVICE: (
        "Something on the server stands in for the verbs library or a device. Look at LD_PRELOAD, the Python named in "
        "probe.env and what was installed beside pyverbs."
    ),
    Outcome.WRONG_DEVICE: "Run the agent on the server again; if its HCA was replaced, confirm the new GUIDs.",
    Outcome.PEER_LOST: (
        "Look whether the server was restarted or the program killed there (dmesg: out of memory), and run it again."
    ),
    Outcome.TIMED_OUT: "Look at the load of the server. If it answers at all, run it again or allow more time.",
    Outcome.TRANSFER_FAILED: (
        "A retry error means that packets or their acknowledgements do not arrive: check both ports' partition and "
        "state, and on Ethernet the addresses and the lossless class. An access error means a wrong memory key."
    ),
    Outcome.CORRUPT: (
        "The transfer reported success but the memory differs. Run it again; if it stays so, take the server out of "
        "use and check HCA, memory and PCI errors."
    ),
    Outcome.OVERFLOW: "Run install-probe again on the server and look at what its shell prints at a login.",
    Outcome.PROTOCOL: "Run install-probe of this FabricUI version on both servers; see that a login prints nothing.",
    Outcome.HOST_ERROR: "The reason names what failed on the server; mend it there and run it again.",
    Outcome.REFUSED_EVIDENCE: (
        "The number was not stored, because it could not be shown to be RDMA on that port. The reason says what lacks."
    ),
    Outcome.IMPLAUSIBLE: "The number was not stored. Check the port's rate and the server's clock source.",
}


def advice_for(outcome: Outcome) -> str:
    """How to mend what this outcome says; "" for a success."""
    return _ADVICE[outcome]
