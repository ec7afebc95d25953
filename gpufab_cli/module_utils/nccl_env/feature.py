"""The nccl_env feature: what NCCL is told on a node, by the same truth that the NICs are set to."""

from ..change import Plan, Step
from ..devices import Devices
from ..host import Host, Reader
from ..settings_file import apply
from ..snapshot import Snapshot
from . import files, gather, plan
from .seen import NcclEnvSeen
from .want import NcclEnvWant


class NcclEnv:
    """/etc/nccl.conf and the same values for containers. Device names are looked up on the node, at boot again."""

    name = plan.FEATURE
    want_type = NcclEnvWant
    seen_type = NcclEnvSeen
    restored = True

    def gather(self, host: Reader, devices: Devices, want: NcclEnvWant) -> NcclEnvSeen:
        """Look at the files, the ports they are about and the jobs that run."""
        return gather.gather(host, devices, want)

    def plan(self, snapshot: Snapshot, want: NcclEnvWant) -> Plan:
        """One step a file that differs."""
        return plan.plan(snapshot, want)

    def only(self, want: NcclEnvWant, device: str) -> NcclEnvWant:  # noqa: ARG002
        """The wish as a whole: a list of devices concerns no single one."""
        return want

    def apply(self, step: Step, host: Host) -> None:
        """Write one file."""
        apply(step, host, files.form(step.changes[0].path[0]))
