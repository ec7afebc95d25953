"""cma_roce_tos and cma_roce_mode: shell scripts of mlnx-tools. Both end with exit 0 even where the write failed."""

from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.state import ROCE_MODES, Cma
from gpufab_cli.lab.hardware.tools.answer import Answer, Request

_VALUE = {"cma_roce_tos": "-t", "cma_roce_mode": "-m"}
_BYTE = 255


def answer(hw: Hardware, request: Request) -> Answer:
    """Answers one call. Even to read, the script makes the device's directory, and removes it at its end."""
    given = dict(zip(request.argv[::2], request.argv[1::2], strict=False))
    flag = _VALUE[request.tool]
    if len(request.argv) % 2 or not set(given) <= {"-d", "-p", flag}:
        return Answer(f"Usage:\n\t{request.tool} -d <dev> [-p <port>] [{flag} <value>]\n", rc=1)
    if not request.is_root:
        return Answer("You must be root to run this\n", rc=1)
    if hw.state.fault("no-rdma-cm"):
        return Answer("Module rdma_cm is not loaded or does not support configfs\n", rc=1)
    device, port = given.get("-d", "mlx5_0"), given.get("-p", "1")
    netdev = next((place.netdev for place in hw.machine.ports if place.rdma == device), None)
    if netdev is None:
        error = f"mkdir: cannot create directory '{device}': No such device\n"
        return Answer(f"Failed to create configuration for {device}\n", error, 1)
    if port != "1":
        return Answer(f"Device {device} Port {port} does not exist\n", rc=1)
    stderr = _write(hw, request, netdev, given[flag]) if flag in given else ""
    cma = hw.port(netdev).cma
    return Answer(f"{cma.tos}\n" if request.tool == "cma_roce_tos" else f"{cma.mode}\n", stderr)


def _write(hw: Hardware, request: Request, netdev: str, text: str) -> str:
    """Writes a value; what goes wrong is only said."""
    try:
        with hw.writes.write(request.tool, " ".join(request.argv), alive=request.alive):
            hw.change(netdev, lambda port: _set(port.cma, request.tool, text))
    except OSError as error:
        return f"{request.tool}: line 1: echo: write error: {error.strerror}\n"
    except (ValueError, IndexError):
        return f"{request.tool}: line 1: echo: write error: Invalid argument\n"
    return ""


def _set(cma: Cma, tool: str, text: str) -> None:
    number = int(text)
    if tool == "cma_roce_mode":
        cma.mode = {1: ROCE_MODES[0], 2: ROCE_MODES[1]}.get(number) or _invalid(text)
    else:
        cma.tos = number if 0 <= number <= _BYTE else int(_invalid(text))


def _invalid(text: str) -> str:
    raise ValueError(text)
