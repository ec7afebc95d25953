"""Over random command lines and wishes: a dry run and a run agree, a second run changes nothing, nor a reboot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufab_cli.module_utils.converge import Order, Status, converge
from gpufab_cli.module_utils.kernel.want import AcsWant, KernelWant
from tests.property.test_machine import relaxed
from tests.unit.core.test_kernel_acs import FEATURE, Node, plan

PLACES = ("0000:18:00.0", "0000:40:00.0")
words = st.lists(st.sampled_from(["quiet", "a=0", "a=1", "iommu=pt"]), unique=True)
about_pci = st.sampled_from([[], [], ["pci=noaer"], ["pci=realloc", "pci=noaer,config_acs=0@pci:1:2"]])
acs = st.none() | st.builds(AcsWant, st.sampled_from(["bare-metal", "vms"]), st.just(PLACES))
wishes = st.builds(
    KernelWant,
    iommu=st.none() | st.just("passthrough"),
    arguments=st.lists(st.sampled_from(["a=1", "a=2", "b=2", "pci=nomsi"]), unique=True).map(tuple),
    acs=acs,
)


def converged(host, wish):
    """A run does what the dry run before it says, and leaves nothing to do."""
    with host.quiet():
        checked = converge(host, FEATURE, wish, Order(check=True))
    made = converge(host, FEATURE, wish, Order())
    assert [result.step for result in checked.steps] == [result.step for result in made.steps]
    assert {result.status for result in made.steps} <= {Status.MADE}, made
    assert plan(host, wish).steps == ()


@pytest.mark.parametrize("loader", ["grub", "bls"])
@pytest.mark.parametrize("kind", ["hgx-h100", "hgx-h100-ib"])
@relaxed
@given(st.data())
def test_command_lines(tmp_path_factory, kind, loader, data):
    host = Node(tmp_path_factory.mktemp("lab"), kind, loader=loader)
    site = data.draw(words, "the site's own")
    host.site(site + data.draw(about_pci, "about PCI"))
    for number in range(3):
        host.files["/proc/sys/kernel/osrelease"] = data.draw(st.sampled_from(["6.15.1", "6.8.0"]), "kernel")
        wish = data.draw(wishes, "wanted")
        converged(host, wish)
        host.reboot(f"boot-{number}")
        found = plan(host, wish)
        assert (found.steps, found.pending) == ((), ())
        line = host.files["/proc/cmdline"]
        assert set(site) <= set(line.split())
        own = [word for word in line.split() if "config_acs=xx" in word]
        assert len(own) == (wish.acs is not None and not found.findings), line
        assert not own or "config_acs=0@" not in line, line
