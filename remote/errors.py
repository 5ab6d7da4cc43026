"""Everything that can go wrong on the way to a manager host and back, as one family of errors.

Each message says what happened, where, and how to mend it, because people read it on a page. `transient` says whether
the same call may succeed later without anybody doing anything; nothing else may be retried.
"""


class RemoteError(Exception):
    """The root of this room's errors; `host` is the manager host's name once it is known."""

    transient = False

    def __init__(self, message: str, *, host: str = "") -> None:
        super().__init__(message)
        self.host = host


class Unreachable(RemoteError, ConnectionError):
    """No connection could be made, or it was lost before the answer was complete."""

    transient = True


class HostKeyMismatch(RemoteError):
    """The machine that answered does not hold the pinned host key. Never retried: a person must look."""


class AccessRefused(RemoteError, PermissionError):
    """The machine refused our key or the account, or its sshd offers nothing we accept."""


class CallTimedOut(RemoteError, TimeoutError):
    """A call was not over by its deadline. The verb may still be running on the host, which bounds it itself."""

    transient = True


class VerbFailed(RemoteError):
    """A verb ended with an exit status other than 0; `sentence` is what it said on stderr."""

    def __init__(self, exit_status: int, sentence: str, *, host: str = "") -> None:
        super().__init__(sentence, host=host)
        self.exit_status = exit_status
        self.sentence = sentence


class VerbRefused(VerbFailed):
    """The wrapper does not know the verb or an argument: FabricUI and the wrapper are of different versions."""


class WrapperMismatch(RemoteError):
    """The wrapper or the table reader on the host is not the one pinned at enrolment."""


class FileMissing(VerbFailed, FileNotFoundError):
    """The file that the verb reads is not there: the partition file, or the staged one."""


class FileUnreadable(VerbFailed):
    """A file is there and cannot be read, or changes while it is being read."""


class FileNotWritable(VerbFailed):
    """The partition file's folder takes no new file: full, read-only, or not this account's."""


class HostBusy(VerbFailed):
    """Another call holds the lock beside the partition file."""

    transient = True


class StaleGeneration(VerbFailed):
    """The host has seen a newer fencing generation: a later rollout has taken over."""


class DigestMismatch(VerbFailed):
    """The bytes that arrived, or that lie staged, are not the ones announced. Nothing was placed."""

    transient = True


class OpenSMNotRunning(VerbFailed):
    """No OpenSM process is bound to the registered port GUID."""


class OpenSMDiffers(VerbFailed):
    """OpenSM runs otherwise than registered: another file, another process than before, or two for one port."""


class NotMaster(OpenSMDiffers):
    """The SM of this host is not the master, so waiting for its sweep proves nothing."""


class BarrierTimedOut(VerbFailed, TimeoutError):
    """The sweep did not settle in time. What is in the tables is not known."""

    transient = True


class TablesMoved(VerbFailed):
    """The fabric was swept again while the tables were read: the reading is a mixture and was thrown away."""

    transient = True


class ReaderFailed(VerbFailed):
    """The table reader could not use the local InfiniBand port, or its libraries are missing."""


class StreamEnded(RemoteError):
    """A conversation ended at the host's side; `exit_status` is -1 when it was killed or the connection was cut."""

    def __init__(self, exit_status: int, said: str, *, host: str = "") -> None:
        super().__init__(said or f"it ended with status {exit_status}", host=host)
        self.exit_status = exit_status
        self.said = said


class StreamOverflow(RemoteError):
    """A host wrote more into a conversation than one ever needs. The rest was not read."""


class NotUnderstood(RemoteError):
    """A host answered something that is no answer of the conversation."""
