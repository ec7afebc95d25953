"""What only a boot or a reset makes so: arguments on the kernel command line, and the firmware of cards."""

import re
from collections.abc import Sequence

import pytest

from gpufab_cli.verify import parsers, pci
from gpufab_cli.verify.expected import Card, Node
from gpufab_cli.verify.reading import Reading, UnreadableError

# Intel's IOMMU has to be asked for, AMD's is on; others need no word (kernel-parameters.txt).
PASSTHROUGH = {"GenuineIntel": ["intel_iommu=on", "iommu=pt"], "AuthenticAMD": ["iommu=pt"]}


def vendor(reading: Reading) -> str:
    """The vendor of the node's CPUs; not every architecture tells one."""
    section = reading.section("vendor")
    silent = section.code == "1" and not section.text
    return "" if silent else section.require("/proc/cpuinfo").rpartition(":")[2].strip()


def started_with(arguments: Sequence[str], reading: Reading) -> None:
    """Fail with the arguments that are missing. The line itself may hold secrets and is never shown."""
    words = reading.section("cmdline").require("/proc/cmdline").split()
    missing = [argument for argument in arguments if argument not in words]
    assert not missing, f"the kernel was started without {', '.join(missing)}"


@pytest.mark.wishes("kernel")
def test_kernel(node: Node, reading: Reading) -> None:
    """The kernel was started with every wanted argument."""
    wish = node.wishes["kernel"]
    started_with(wish["arguments"], reading)
    if "iommu" in wish:
        started_with(PASSTHROUGH.get(vendor(reading), []), reading)


def config_acs(release: str) -> bool:
    """Whether every kernel of the release has pci=config_acs without the fault of its first; of older ones some do."""
    major, _, rest = release.partition(".")
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
    named = acs_devices(reading.section("cmdline").require("/proc/cmdline"))
    release = reading.section("kernel-release").require("uname")
    if not named and not config_acs(release):
        return
    assert named, f"kernel {release.strip()} was started without pci=config_acs"
    functions = pci.functions(reading.section("numa/lspci").require("lspci"))
    paths, models = dict(pci.rows(reading, "paths")), dict(pci.rows(reading, "bridges"))
    for bridge in sorted(pci.counting(node, reading)):
        able = functions.get(bridge, pci.Function()).able & {*pci.REDIRECTS, *pci.ISOLATES}
        if able and not {f"pci:{models.get(bridge)}", pci.place(paths, bridge)} & set(named):
            pytest.fail(f"pci=config_acs does not name {bridge}")


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
    assert not any(wrong), "; ".join(filter(None, wrong))
    if odd:
        raise odd[0]


@pytest.mark.wishes("firmware")
@pytest.mark.manages("versions")
def test_firmware_version(card: Card, reading: Reading) -> None:
    """The card has the firmware version that is wanted for its PSID. All functions of a slot are of one card."""
    rows = [line.split("\t") for line in reading.section("versions").require("sysfs").splitlines()]
    slot = card.pci.rpartition(".")[0]
    found = next((row for row in rows if row[0].rpartition(".")[0] == slot), None)
    if found is None:
        raise UnreadableError(f"no RDMA device at {card.pci} tells its firmware version")
    _, psid, version = found
    wanted = card.wanted("versions").get(psid, version)
    assert version == wanted, f"{psid} has firmware {version}, wanted {wanted}"
