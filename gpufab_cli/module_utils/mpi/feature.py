"""The mpi feature: what Open MPI, its run-time and UCX are told on a node, and the program that binds ranks."""

from ..change import ABSENT, Plan, Step
from ..devices import Devices
from ..host import Host, Reader
from ..settings_file import apply
from ..snapshot import Snapshot
from . import files, gather, plan
from .seen import MpiSeen
from .want import MpiWant


class Mpi:
    """Parameter files, each in the folder of its own Open MPI. Device names are looked up on the node, also at boot."""

    name = plan.FEATURE
    want_type = MpiWant
    seen_type = MpiSeen
    restored = True

    def gather(self, host: Reader, devices: Devices, want: MpiWant) -> MpiSeen:
        """Look at the libraries, the files and the jobs that run."""
        return gather.gather(host, devices, want)

    def plan(self, snapshot: Snapshot, want: MpiWant) -> Plan:
        """One step a file that differs."""
        return plan.plan(snapshot, want)

    def only(self, want: MpiWant, device: str) -> MpiWant:  # noqa: ARG002
        """The wish as a whole: a list of devices concerns no single one."""
        return want

    def apply(self, step: Step, host: Host) -> None:
        """Write one file; the program is replaced as a whole or, undone where there was none, taken away."""
        path = step.changes[0].path[0]
        if path != files.PROGRAM:
            apply(step, host, files.form(path))
        elif step.changes[0].desired is ABSENT:
            host.remove(path)
        elif not step.undoes:
            host.put(path, files.SCRIPT, files.RUN_BY_ALL)
