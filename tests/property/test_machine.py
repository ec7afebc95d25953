"""Over random drift on emulated machines: audit, dry run and run agree, a second run changes nothing, nor a reboot."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gpufab_cli.lab.hardware import sriov
from gpufab_cli.module_utils import planning
from gpufab_cli.module_utils.change import Impact
from gpufab_cli.module_utils.converge import Order, Status, converge
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.firmware import want as firmware
from gpufab_cli.module_utils.restore import EARLY, restore
from gpufab_cli.module_utils.sriov.want import PortWant, SriovWant, VfWant
from tests.machine import LabHost

PCI = "0000:18:00.0"
ALL = Order(allow=frozenset(Impact), busy_ok=True)
MACHINES = ("hgx-h100", "hgx-h100-ib")

flag = st.none() | st.booleans()
byte = st.integers(0, 255)


def guid(prefix):
    return lambda number: f"02:{prefix}:00:00:00:00:00:{number:02x}"


ethernet_vf = st.builds(
    VfWant,
    mac=st.none() | byte.map(lambda number: f"02:00:00:00:01:{number:02x}"),
    vlan=st.none() | st.integers(0, 4094),
    vlan_qos=st.none() | st.integers(0, 7),
    max_tx_mbps=st.none() | st.integers(0, 400000),
    min_tx_mbps=st.none() | st.integers(0, 1000),
    spoofchk=flag,
    trust=flag,
    link_state=st.none() | st.sampled_from(["auto", "enable", "disable"]),
)
infiniband_vf = st.builds(
    VfWant,
    node_guid=st.none() | byte.map(guid("aa")),
    port_guid=st.none() | byte.map(guid("ab")),
    link_state=st.none() | st.sampled_from(["auto", "enable", "disable"]),
)
PARAMETERS = {
    "NUM_OF_VFS": st.integers(0, 64).map(str),
    "SRIOV_EN": st.sampled_from(["True", "False", "0", "1"]),
    "CNP_DSCP_P1": st.integers(0, 63).map(str),
    "PCI_WR_ORDERING": st.sampled_from(["per_mkey", "force_relax"]),
    "ATS_ENABLED": st.sampled_from(["True", "False"]),
}
wishes = st.fixed_dictionaries({}, optional=PARAMETERS)


def drift(host, name, want):
    snapshot = planning.take(host, {name: FEATURES[name]}, {name: want})
    return {change.path for step in planning.plan(FEATURES[name], snapshot, want).steps for change in step.changes}


def holds(host, name, want):
    """The invariant; what a run leaves is nothing."""
    feature = FEATURES[name]
    with host.quiet():
        audited = drift(host, name, want)
        checked = converge(host, feature, want, replace(ALL, check=True))
    made = converge(host, feature, want, ALL)
    assert audited == {c.path for r in checked.steps for c in r.step.changes}
    assert audited == {c.path for r in made.steps for c in r.step.changes}
    assert {result.status for result in made.steps} <= {Status.MADE}, made
    again = converge(host, feature, want, ALL)
    assert (again.steps, again.pending, drift(host, name, want)) == ((), (), set())


def machine(tmp_path_factory, kind):
    return LabHost(tmp_path_factory.mktemp("lab"), kind, rails=1)


# Shrinking takes minutes where one example is a whole machine.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
relaxed = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=PHASES)


@pytest.mark.parametrize("kind", MACHINES)
@relaxed
@given(st.data())
def test_vfs(tmp_path_factory, kind, data):
    host = machine(tmp_path_factory, kind)
    place = host.hardware.machine.ports[0]
    one = ethernet_vf if host.hardware.machine.ethernet else infiniband_vf
    sriov.set_count(host.hardware, place, data.draw(st.integers(0, 4), "VFs found"))
    for index, _ in enumerate(host.hardware.port(place.netdev).sriov.vfs):
        found = {key: value for key, value in vars(data.draw(one, "found")).items() if value is not None}
        found["state"] = found.pop("link_state", "auto")
        sriov.set_vf(host.hardware, place, index, found)
    vfs = tuple(data.draw(st.lists(one, max_size=4), "VFs wanted"))
    want = SriovWant((PortWant("compute/0", PCI, vfs, autoprobe=data.draw(flag, "autoprobe")),))
    holds(host, "sriov", want)
    host.boot()
    assert restore(host, EARLY)
    assert drift(host, "sriov", want) == set()


@pytest.mark.parametrize("kind", MACHINES)
@relaxed
@given(found=wishes, running=wishes, wanted=wishes)
def test_firmware(tmp_path_factory, kind, found, running, wanted):
    host = machine(tmp_path_factory, kind)
    place = host.hardware.machine.ports[0]
    kinds, card = sriov.kinds(host.hardware, place), sriov.card_of(host.hardware, place)
    card.next = {name: kinds[name].read(value) for name, value in found.items()}
    card.current = {name: kinds[name].read(value) for name, value in running.items()}
    host.hardware.restructure()
    want = firmware.FirmwareWant((firmware.PortWant("compute/0", PCI, wanted),))
    holds(host, "firmware", want)
    host.boot()
    assert drift(host, "firmware", want) == set()
