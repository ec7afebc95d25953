"""What only a boot or a reset makes so: arguments on the kernel command line, and the firmware of cards."""

import re
from collections.abc import Sequence

import pytest

from gpufab_cli.verify import parsers, pci
from gpufab_cli.verify.compare import compare, settled
from gpufab_cli.verify.expected import Card, Node
from gpufab_cli.verify.reading import Reading, UnreadableError, release, told

# Intel's IOMMU has to be asked for, AMD's is on; others need no word (kernel-parameters.txt).
PASSTHROUGH = {"GenuineIntel": ["intel_iommu=on", "iommu=pt"], "AuthenticAMD": ["iommu=pt"]}


def vendor(reading: Reading) -> str:
    """The vendor of the node's CPUs; not every architecture tells one."""
    section = reading.section("vendor")
    if section.code == "1" and not section.text:
        return ""
    found = re.fullmatch(r"vendor_id\s*:\s*(\S+)", section.words("/proc/cpuinfo"))
    if found is None:
        raise UnreadableError("/proc/cpuinfo: no vendor as a known kernel prints it")
    return found[1]


def started_with(arguments: Sequence[str], reading: Reading) -> None:
    """Fail with the arguments that are missing. The line itself may hold secrets and is never shown."""
    words = reading.section("cmdline").words("/proc/cmdline").split()
    missing = [argument for argument in arguments if argument not in words]
    if arguments:
        compare(not missing, f"the kernel was started without {', '.join(missing)}")


@pytest.mark.wishes("kernel")
def test_kernel(node: Node, reading: Reading) -> None:
    """The kernel was started with every wanted argument."""
    wish = node.wishes["kernel"]
    started_with(wish["arguments"], reading)
    if "iommu" in wish:
        found = vendor(reading)
        started_with(PASSTHROUGH.get(found, []), reading)
        if found not in PASSTHROUGH:
            settled(f"kernels for {found or 'these CPUs'} need no argument for their IOMMU")


def config_acs(running: str) -> bool:
    """Whether every kernel of the release has pci=config_acs without the fault of its first; of older ones some do."""
    major, _, rest = running.partition(".")
    minor = rest.partition(".")[0]
    return major.isdigit() and minor.isdigit() and (int(major), int(minor)) >= (6, 15)


def acs_devices(line: str) -> list[str]:
    """What the last pci=config_acs on a kernel's command line names, for that one counts."""
    options = [option for word in line.split() if word.startswith("pci=") for option in word[4:].split(",")]
    told = [option.removeprefix("config_acs=") for option in options if option.startswith("config_acs=")]
    return [entry.partition("@")[2] for entry in told[-1].split(";")] if told else []


@pytest.mark.wishes("kernel", "acs")
def test_kernel_acs(node: Node, reading: Reading) -> None:
    """A kernel that has pci=config_acs was started with a word for each bridge that counts and has ACS."""
    named = acs_devices(reading.section("cmdline").words("/proc/cmdline"))
    running = release(reading.section("kernel-release"))
    if not named and not config_acs(running):
        settled(f"kernel {running} has no such argument")
        return
    compare(bool(named), f"kernel {running} was started without pci=config_acs")
    functions = pci.functions(reading.section("numa/lspci").words("lspci"))
    paths = pci.places(node, reading)
    models = pci.identities(paths, reading)
    for bridge in sorted(pci.counting(node, reading)):
        function = functions.get(bridge)
        if function is None or (function.acs is None and not reading.is_root):
            raise UnreadableError(f"lspci shows nothing of {bridge}")
        names = {pci.model(models.get(bridge)), pci.place(paths, bridge)}
        lacks = not function.able & {*pci.REDIRECTS, *pci.ISOLATES}
        compare(lacks or bool(names & set(named)), f"pci=config_acs does not name {bridge}")


def means(printed: str, wish: str) -> bool:
    """Whether a value as printed, such as ``8``, ``True(1)`` or ``_1_TC(1)``, is the wished one by name or number."""
    name, _, number = printed.rstrip(")").rpartition("(")
    spellings = {printed.lower(), name.lower(), name.lower().lstrip("_")}
    wished = numeric(wish)
    return wish.lower() in spellings or (wished is not None and wished == numeric(number))


def numeric(text: str) -> int | None:
    """A number in decimal or hexadecimal notation, or a flag."""
    flag = {"true": 1, "false": 0}.get(text.lower())
    if flag is not None or not re.fullmatch(r"[0-9]+|0[xX][0-9a-fA-F]+", text):
        return flag
    return int(text, 16 if text[:2] in ("0x", "0X") else 10)


def fault(text: str, name: str, wish: str) -> str:
    """What is wrong with one parameter, or ""."""
    current, following = parsers.firmware(text, name)
    if not means(following, wish):
        return f"{name} is {following} from the next boot on, wanted {wish}"
    return "" if means(current, wish) else f"{name} runs as {current}: {wish} is pending a reset or reboot"


@pytest.mark.wishes("firmware")
@pytest.mark.manages("parameters")
def test_firmware(card: Card, reading: Reading) -> None:
    """Every wanted parameter runs, and will after the next boot. What is wrong outweighs what cannot be read."""
    text = reading.section(f"firmware/{card.pci}").require("mlxconfig or mstconfig")
    wrong: list[str] = []
    odd: list[UnreadableError] = []
    for name, wish in card.parameters.items():
        try:
            wrong.append(fault(text, name, wish))
        except UnreadableError as error:
            odd.append(error)
    compare(not any(wrong), "; ".join(filter(None, wrong)))
    if odd:
        raise odd[0]


@pytest.mark.wishes("firmware")
@pytest.mark.manages("versions")
def test_firmware_version(card: Card, reading: Reading) -> None:
    """The card has the firmware version that is wanted for its PSID. All functions of a slot are of one card."""
    rows = reading.section("versions").fields("sysfs", 3)
    slot = card.pci.rpartition(".")[0]
    found = next((row for row in rows if row[0].rpartition(".")[0] == slot), None)
    if found is None:
        raise UnreadableError(f"no RDMA device at {card.pci} tells its firmware version")
    psid, version = (told(word, f"PSID and firmware version of {card.pci}") for word in found[1:])
    wanted = card.wanted("versions").get(psid)
    if wanted is None:
        settled(f"no version is wanted of {psid}")
    else:
        compare(version == wanted, f"{psid} has firmware {version}, wanted {wanted}")
