"""A fabric of machines: fabric.yml beside them, and `gpufab` run as an operator runs it."""

import os
from pathlib import Path

from tests.operator import BIN, Operator
from tests.vm.machine import Machine

VARIABLE = "GPUFAB_VM_BIN"
"""Names the folder of another gpufab, such as that of an older checkout, to see what the tests say of it."""
ALLOW = "traffic,link-flap,vf-loss"
RAILS = 2
VFS = 2
HUGEPAGES = 8
SLOW_S = "300"
"""The audit's limit a host: without KVM all takes ten times as long."""

FABRIC = f"""\
name: vm
networks:
  compute:
    transport: roce
    mtu: 9000
    rails: {RAILS}
    qos: dcqcn
    addressing: {{ipv4: "10.10.{{rail}}.{{host}}/24"}}
qos:
  dcqcn:
    lossless: [{{priority: 3, dscp: [26]}}]
    cnp: {{priority: 6, dscp: 48}}
    other_dscp: {{priority: 0}}
    pfc: true
    ecn: true
    ets: {{3: 50, 0: 50}}
    traffic_class: true
profiles:
  vm:
    ports: [{{network: compute, rail: 0-{RAILS - 1}}}]
    sriov: {{network: compute, vfs: {VFS}, trust: true, spoofchk: false}}
    limits: {{memlock: unlimited, services: [slurmd]}}
    numa: {{nodes: 2, hugepages: {{2M: {HUGEPAGES}}}, transparent_hugepages: madvise, zone_reclaim: 0}}
    nccl_env: {{socket_interfaces: [mgmt0], containers: [env-file], release: "2.22.3"}}
    mpi: {{implementation: openmpi, socket_interfaces: [mgmt0], binding: numa}}
hosts:
  - {{name: HOSTS, profile: vm}}
rollout: {{canary: 0, batch: 100%, soak_s: 0, verify: false}}
connection: {{user: ops, become: sudo, ssh_config: ssh_config}}
"""


class Site(Operator):
    """One machine or two, and their fabric."""

    bin = Path(os.environ.get(VARIABLE) or BIN)

    def __init__(self, folder: Path, machines: list[Machine]) -> None:
        super().__init__(folder)
        self.machines = machines
        hosts = machines[0].name if len(machines) == 1 else "gpu[01-02]"
        (folder / "fabric.yml").write_text(FABRIC.replace("HOSTS", hosts))
        self.reach()

    def reach(self) -> None:
        """Write how the machines are reached now."""
        (self.folder / "ssh_config").write_text("".join(machine.guest.text() for machine in self.machines))

    def run(self, *argv: str, timeout: float = 1500):  # as the base says
        return super().run(*argv, timeout=timeout)

    def audit(self, rc: int | None = 0) -> dict:
        """What `gpufab audit` prints; it must end as told."""
        return self.json("audit", "--timeout", SLOW_S, rc=rc)

    def apply(self, *argv: str, rc: int | None = 0):
        """`gpufab apply` with consent."""
        return self.cli("apply", "--allow", ALLOW, "--timeout", SLOW_S, *argv, rc=rc)
