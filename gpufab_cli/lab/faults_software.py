"""Faults of the software around the GPUs, and of resource limits."""

from gpufab_cli.lab.fault import FaultKind, Strike, model
from gpufab_cli.lab.hardware.gpu_software import LIBRARY

_RESTART = "systemctl restart nvidia-fabricmanager || true"


def _upgrade(strike: Strike) -> None:
    version = strike.node.ask("upgrade-driver")["version"]
    strike.shell('ln -sfn "libnvidia-ml.so.$1" "$2"', version, LIBRARY)


def _mismatch(strike: Strike) -> None:
    strike.node.ask("break", name="fabricmanager-mismatch", target="", count=0)
    strike.shell(_RESTART)


def _match(strike: Strike) -> None:
    strike.node.ask("repair", name="fabricmanager-mismatch")
    strike.shell(_RESTART)


def _limit(strike: Strike) -> None:
    strike.shell('prlimit --pid "$(systemctl show --property=MainPID --value ssh)" --memlock=65536:65536')


KINDS = (
    FaultKind("driver-upgraded", "the GPU driver's packages were upgraded, the old module runs", _upgrade),
    FaultKind("fabricmanager-mismatch", "Fabric Manager is not of the driver's version", _mismatch, _match),
    model("peermem-unloaded", "nvidia_peermem is gone, as after a restart of the RDMA stack"),
    model("peermem-refused", "nvidia_peermem was built against another ib_core: the kernel refuses it"),
    FaultKind("memlock-limited", "sshd runs with 64 KiB of locked memory, and so does what it starts", _limit),
)
