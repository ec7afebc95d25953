"""What a profile may say of interrupts, memory and PCI Express, and what comes of it for a host."""

import pytest

from gpufab_cli.fabric.resolve import resolve
from gpufab_cli.intent.numa import numa_want
from gpufab_cli.module_utils.kernel.want import AcsWant, KernelWant
from gpufab_cli.module_utils.numa.want import SharedSubnet
from tests.fabrics import compiled, lock, refusals, spec

BOX = "ports: [{network: compute, rail: 0-1}]"


def of_first(found):
    fabric = resolve(found, lock())
    return numa_want(fabric, fabric.hosts["gpu01"])


def want(text):
    return of_first(spec((BOX, f"{BOX}\n    numa: {text}")))


def test_a_profile_that_says_nothing_tells_nothing():
    found = spec()
    assert of_first(found) is None
    assert "numa" not in compiled(found, lock())["gpu01"]


def test_what_is_left_out_is_not_managed():
    found = want("{balancing: false}")
    assert [(port.rail, port.pci, port.position) for port in found.ports] == [
        ("compute/0", "0000:18:00.0", 0),
        ("compute/1", "0000:28:00.0", 1),
    ]
    managed = {name for name, value in vars(found).items() if value is not None} - {"ports"}
    assert managed == {"balancing"}


def test_a_whole_profile():
    found = want(
        "{nodes: 8, irq: local, balancing: true, zone_reclaim: 1, transparent_hugepages: never,"
        " hugepages: {2M: 1024, 1G: 0}, shared_subnet: {rp_filter: 0}, max_read_request: 4096, use: vms, acs: set}"
    )
    assert (found.irqbalance, found.set_acs, found.use) == (True, True, "vms")
    assert found.hugepages == {"2M": 1024, "1G": 0}
    assert found.shared_subnet == SharedSubnet(arp_ignore=1, arp_announce=2, rp_filter=0)


def test_usual_values_of_a_shared_subnet_and_values_that_are_left_alone():
    assert want("{shared_subnet: {}}").shared_subnet == SharedSubnet(1, 2, 2)
    assert want("{shared_subnet: {arp_ignore: null}}").shared_subnet == SharedSubnet(None, 2, 2)


@pytest.mark.parametrize(
    ("acs", "sets", "told"),
    [
        ("judge", None, KernelWant()),
        ("set", True, KernelWant()),  # an argument of before is taken out again
        ("kernel-argument", True, KernelWant(acs=AcsWant("vms", ("0000:18:00.0", "0000:28:00.0")))),
        ("null", None, None),
    ],
)
def test_how_acs_is_set_and_what_the_kernel_is_told(acs, sets, told):
    assert want(f"{{use: vms, acs: {acs}}}").set_acs is sets
    found = spec((BOX, f"{BOX}\n    numa: {{use: vms, acs: {acs}}}"))
    assert compiled(found, lock())["gpu01"].get("kernel") == told


def test_an_argument_that_each_host_computes_is_not_given_by_hand_too():
    text = "numa: {use: vms, acs: kernel-argument}\n    kernel: {arguments: [quiet, 'pci=config_acs=1@pci:1:2']}"
    (said,) = refusals((BOX, f"{BOX}\n    {text}"))
    assert said == "profiles.box.kernel.arguments[1]: numa: {acs: kernel-argument} has each host compute config_acs"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{acs: set}", "what ACS has to be depends on who uses the devices"),
        ("{max_read_request: 4000}", "numa.max_read_request"),
        ("{zone_reclaim: 8}", "numa.zone_reclaim"),
        ("{hugepages: {2MB: 1}}", "a page size such as 2M or 1G"),
        ("{hugepages: {2M: -1}}", "numa.hugepages"),
        ("{irq: near}", "numa.irq"),
        ("{shared_subnet: {rp_filter: 3}}", "rp_filter"),
    ],
)
def test_refused(text, said):
    assert said in "\n".join(refusals((BOX, f"{BOX}\n    numa: {text}")))
