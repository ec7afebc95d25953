"""``gpufab-bind``: run a program next to the GPU of its local rank, under any launcher."""

import argparse
import os
import sys
from typing import Dict, List, Mapping, Optional

from ..host import Reader
from ..nccl_env.files import NCCL_CONF
from ..topology.cpus import format_cpus
from . import kernel
from .binding import BindError, Binding, choose, chosen
from .machine import exported, gather
from .ranks import local_rank

FAILED, CANNOT_RUN, NOT_FOUND = 125, 126, 127
"""As env(1) and numactl's kind have it: the program was not run; it cannot be; it is not there."""
VISIBLE = "CUDA_VISIBLE_DEVICES"
_MODES = {"bind": kernel.MPOL_BIND, "preferred": kernel.MPOL_PREFERRED}


def run(host: Reader, argv: List[str]) -> int:
    """Bind this process and become the program; an exit code where that fails."""
    parser = _parser()
    options = parser.parse_args(argv)
    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not program:
        parser.error("no program is given")
    try:
        binding = _binding(host, options, os.environ)
        if binding.cpus:
            kernel.bind_cpus(binding.cpus)
        if binding.memory and options.memory != "none":
            kernel.bind_memory(binding.memory, _MODES[options.memory])
    except BindError as error:
        _say(str(error))
        return FAILED
    if options.show or not binding.cpus:
        _say(words(binding, options.memory))
    if options.nics and not binding.nics:
        _say(f"{NCCL_CONF} names no device that is near the GPU; the program has the NICs that it finds")
    environment = {**os.environ, **_exports(binding, gpus=options.gpus, nics=options.nics)}
    try:
        os.execvpe(program[0], program, environment)  # noqa: S606 an argv list
    except OSError as error:
        _say(f"{program[0]}: {error.strerror}")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else CANNOT_RUN


def words(binding: Binding, memory: str) -> str:
    """A binding in one line."""
    gpu = f"GPU {binding.gpu.name} ({binding.gpu.pci})"
    if not binding.cpus:
        return f"{gpu}: the machine does not tell its NUMA node; not bound"
    node = format_cpus(binding.memory) if binding.memory and memory != "none" else "any node"
    nics = f", NIC {','.join(binding.nics)}" if binding.nics else ""
    return f"{gpu}: CPUs {format_cpus(binding.cpus)}, memory of {node}{nics}"


def _binding(host: Reader, options: argparse.Namespace, environment: Mapping[str, str]) -> Binding:
    rank: Optional[int] = options.local_rank
    if options.gpu is None and rank is None:
        rank, said = local_rank(environment)
        if rank is None:
            raise BindError(f"{said}; give --local-rank NUMBER")
    machine = gather(host, nics=options.nics)
    if options.gpu is not None:
        return chosen(machine, options.gpu)
    return choose(machine, rank or 0, environment.get(VISIBLE))


def _exports(binding: Binding, *, gpus: bool, nics: bool) -> Dict[str, str]:
    found = {VISIBLE: binding.gpu.name, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if gpus else {}
    return {**found, **(exported(binding.nics) if nics and binding.nics else {})}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpufab-bind",
        description="Run a program on the CPUs and the memory of the NUMA node of its local rank's GPU.",
    )
    parser.add_argument("--local-rank", type=int, metavar="N", help="the rank on this node; else the launcher's word")
    parser.add_argument(
        "--gpu",
        type=int,
        metavar="N",
        help="the GPU, by its number among all of the machine in the order of PCI addresses",
    )
    parser.add_argument("--memory", choices=["bind", "preferred", "none"], default="bind", help="default: bind")
    parser.add_argument("--gpus", action="store_true", help=f"set {VISIBLE} to this GPU alone")
    parser.add_argument("--nics", action="store_true", help="set NCCL_IB_HCA and UCX_NET_DEVICES to the GPU's NICs")
    parser.add_argument("--show", action="store_true", help="say on stderr what the program is bound to")
    parser.add_argument("program", nargs=argparse.REMAINDER, help="the program and its arguments")
    return parser


def _say(text: str) -> None:
    print(f"gpufab-bind: {text}", file=sys.stderr)  # noqa: T201
