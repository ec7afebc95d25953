"""The dvfs feature: clocks and power of GPUs, frequencies and idle states of CPUs, and the hooks of jobs."""

from dataclasses import replace

from ..change import Plan, Step
from ..devices import Devices
from ..host import Host, Reader
from ..snapshot import Snapshot
from . import gather, gpu_plan, plan
from .seen import DvfsSeen
from .want import DvfsWant


class Dvfs:
    """The static policy. Nothing here follows the load."""

    name = gpu_plan.FEATURE
    want_type = DvfsWant
    seen_type = DvfsSeen
    restored = True

    def gather(self, host: Reader, devices: Devices, want: DvfsWant) -> DvfsSeen:
        """Look at the wanted GPUs and at the CPUs."""
        return gather.gather(host, devices, want)

    def plan(self, snapshot: Snapshot, want: DvfsWant) -> Plan:
        """A step a part of the node that differs."""
        return plan.plan(snapshot, want)

    def only(self, want: DvfsWant, device: str) -> DvfsWant:
        """The wish for one GPU; most steps concern no single device and are read back as a whole."""
        if not device:
            return want
        return replace(want, gpus=tuple(gpu for gpu in want.gpus if gpu.pci == device), cpu=None, jobs=None)

    def apply(self, step: Step, host: Host) -> None:
        """Make one step."""
        from . import apply  # late: an audit, a check and a node in sync go without

        kind = step.name.split()[1]
        if kind == "cpu":
            apply.cpu_step(step, host)
        elif kind == "persistenced":
            apply.persistenced_step(step, host)
        elif kind == "jobs":
            apply.jobs_step(step, host)
        else:
            apply.gpu_step(step, host)
