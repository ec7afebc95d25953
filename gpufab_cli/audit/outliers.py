"""Hosts with another version than most of their like. Nothing is declared of these: the others say what is usual."""

from collections.abc import Iterator, Mapping

from gpufab_cli.audit.finding import FabricFinding
from gpufab_cli.fabric.hostlist import fold
from gpufab_cli.module_utils.devices import Gpu, Nic
from gpufab_cli.module_utils.gpu_stack.seen import GpuStackSeen
from gpufab_cli.module_utils.snapshot import Snapshot

CODE = "fabric.version-outlier"

Traits = tuple[tuple[str, frozenset[str]], ...]
"""What is compared, and what a host has of it: more than one where its own devices differ."""


def traits(snapshot: Snapshot) -> Traits | None:
    """Firmware by board, driver by device, kernel and version of the GPU driver by the GPUs of the host."""
    found: dict[str, set[str]] = {}
    for nic in snapshot.devices.nics:
        if not nic.is_vf and isinstance(nic.psid, str) and isinstance(nic.fw_version, str):
            found.setdefault(f"firmware of {nic.psid}", set()).add(nic.fw_version)
    devices: list[Nic | Gpu] = [nic for nic in snapshot.devices.nics if not nic.is_vf]
    for device in (*devices, *snapshot.devices.gpus):
        found.setdefault(f"driver of {_id(device.vendor)}:{_id(device.device)}", set()).add(device.driver or "none")
    for name, version in (("kernel", snapshot.kernel), ("GPU driver", _gpu_driver(snapshot))):
        if version:
            models = sorted({f"{_id(gpu.vendor)}:{_id(gpu.device)}" for gpu in snapshot.devices.gpus})
            found[f"{name} of hosts with {', '.join(models)}" if models else name] = {version}
    return tuple((name, frozenset(values)) for name, values in sorted(found.items())) or None


def _gpu_driver(snapshot: Snapshot) -> str:
    """Its version, where the fabric has it looked at."""
    seen = snapshot.seen.get("gpu_stack")
    return seen.driver.running if isinstance(seen, GpuStackSeen) and isinstance(seen.driver.running, str) else ""


def outliers(facts: Mapping[str, Traits], code: str = CODE) -> Iterator[FabricFinding]:
    """One finding a trait in which hosts differ; where no value is that of most, all of them stand out."""
    camps: dict[str, dict[frozenset[str], list[str]]] = {}
    for host in sorted(facts):
        for name, values in facts[host]:
            camps.setdefault(name, {}).setdefault(values, []).append(host)
    for name, by_value in sorted(camps.items()):
        ranked = sorted(by_value.items(), key=lambda camp: (-len(camp[1]), sorted(camp[0])))
        if len(ranked) > 1:
            tie = len(ranked[0][1]) == len(ranked[1][1])
            odd = tuple(host for _, hosts in (ranked if tie else ranked[1:]) for host in hosts)
            words = (f"{fold(hosts)}: {' and '.join(sorted(values))}" for values, hosts in ranked)
            yield FabricFinding(code, odd, f"{name}: " + "; ".join(words))


def _id(text: str) -> str:
    return text.removeprefix("0x")
