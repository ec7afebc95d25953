"""VFs, firmware and kernel arguments in a fabric.yml: what is refused, and what each host is told."""

import pytest

from gpufab_cli.errors import GpufabError, SpecErrors
from gpufab_cli.intent.addresses import vf_guid, vf_mac
from gpufab_cli.module_utils.arguments import argument_spec
from gpufab_cli.module_utils.schema import decode, encode
from gpufab_cli.spec.lock import Lock, LockedHost, LockedPort
from tests.fabrics import compiled, lock, locked_port, refusals, spec

PORTS = "ports: [{network: compute, rail: 0-1}]"


def with_profile(text):
    return (PORTS, f"{PORTS}\n    {text}")


def wants(text, locked=None, *more):
    return compiled(spec(with_profile(text), *more), locked or lock())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sriov: {network: compute, vfs: 8}", []),
        ("sriov: [{network: compute, rail: 0, vfs: 8}, {network: compute, rail: 1, vfs: 4}]", []),
        ("sriov: {network: compute, vfs: 128}", ["128 is not in 0..127"]),
        ("sriov: {network: storage, vfs: 8}", ["no port of the profile is on 'storage'"]),
        ("sriov: {network: management, vfs: 8}", ["no port of the profile is on 'management'"]),
        ("sriov: {network: compute, rail: 2, vfs: 8}", ["the profile has no rail 2 of compute"]),
        ("sriov: [{network: compute, vfs: 8}, {network: compute, rail: 1, vfs: 4}]", ["compute/1 is named twice"]),
        ("sriov: {network: compute, vfs: 2, each: {2: {vlan: 5}}}", ["there is no VF 2"]),
        ("sriov: {network: compute, vfs: 2, max_tx_mbps: 10, min_tx_mbps: 20}", ["20 is more than max_tx_mbps, 10"]),
        ("sriov: {network: compute, vfs: 2, vlan: 0, vlan_qos: 3}", ["there is no VLAN tag to carry it"]),
        ("firmware: {network: compute, link_type: infiniband}", ["compute is roce"]),
        ("firmware: {network: compute, num_of_vfs: 8, parameters: {SRIOV_EN: true}}", ["num_of_vfs says it already"]),
        (
            "firmware: {network: compute, parameters: {CNP_DSCP_P2: 4}, port_parameters: {CNP_DSCP: 48}}",
            ["port_parameters says it already"],
        ),
        ("kernel: {iommu: passthrough, arguments: [hugepagesz=1G]}", []),
    ],
)
def test_what_is_refused(text, said):
    found = refusals(with_profile(text))
    assert len(found) == len(said), found
    for message, words in zip(found, said, strict=True):
        assert words in message or "127" in message


def test_more_vfs_than_the_firmware_is_told_to_allow():
    text = "sriov: {network: compute, vfs: 8}\n    firmware: {network: compute, num_of_vfs: 4}"
    assert refusals(with_profile(text)) == ["profiles.box.sriov[0].vfs: 8 VFs, and firmware allows 4"]


def test_a_fabric_that_names_none_of_it_tells_nothing_of_it():
    told = compiled(spec(), lock())["gpu01"]
    assert not {"sriov", "firmware", "kernel"} & set(told)


def test_each_vf_has_an_address_of_its_own_and_the_same_at_each_compilation():
    first, second = (wants("sriov: {network: compute, vfs: 8}") for _ in range(2))
    assert first == second
    macs = [vf.mac for want in first.values() for port in want["sriov"].ports for vf in port.vfs]
    assert len(macs) == len(set(macs)) == 3 * 2 * 8
    assert all(int(mac[:2], 16) & 3 == 2 for mac in macs)  # locally administered, unicast


def test_addresses_do_not_depend_on_how_many_vfs_there_are():
    few = wants("sriov: {network: compute, vfs: 2}")["gpu01"]["sriov"].ports[0].vfs
    many = wants("sriov: {network: compute, vfs: 8}")["gpu01"]["sriov"].ports[0].vfs
    assert many[:2] == few


def test_derived_addresses_are_what_they_were():
    """They are on switches and in subnet managers: no release may change them."""
    assert vf_mac("02:00:00:00:01:00", 0) == "96:e9:1a:58:5e:fc"
    assert vf_guid("node", "a088:c203:0012:34c6", 7) == "da:7a:6a:be:26:da:f7:47"
    assert vf_guid("port", "a088:c203:0012:34c6", 7) != vf_guid("node", "a088:c203:0012:34c6", 7)


def test_settings_of_all_and_of_one_vf():
    text = 'sriov: {network: compute, vfs: 2, trust: true, vlan: 7, each: {1: {vlan: 0, mac: "02:00:00:00:99:01"}}}'
    found = wants(
        text, None, ('"gpu[01-03]"', "gpu01"), ('"10.0.0.[11-13]"', '"10.0.0.11"'), (", rail: 0-1}", ", rail: 0}")
    )
    first, second = found["gpu01"]["sriov"].ports[0].vfs
    assert (first.trust, first.vlan) == (True, 7)
    assert (second.trust, second.vlan, second.mac) == (True, 0, "02:00:00:00:99:01")


def test_one_address_for_the_vfs_of_many_ports_is_refused():
    with pytest.raises(SpecErrors) as refused:
        wants('sriov: {network: compute, vfs: 1, each: {0: {mac: "02:00:00:00:99:01"}}}')
    assert len(refused.value.errors) == 5
    assert str(refused.value.errors[0]).startswith(
        "gpu01 compute/1 VF 0 would have 02:00:00:00:99:01, which gpu01 compute/0 VF 0 has"
    )


def test_without_an_address_in_the_lock_none_can_be_derived():
    ports = {f"compute/{rail}": LockedPort(pci=locked_port(1, rail).pci) for rail in range(2)}
    locked = Lock(hosts={**lock().hosts, "gpu01": LockedHost(ports=ports)})
    found = wants("sriov: {network: compute, vfs: 8}", locked)
    assert list(found) == ["gpu02", "gpu03"]
    assert "no MAC of gpu01 compute/0" in found.unlocked["gpu01"].message
    assert wants("sriov: {network: compute, vfs: 8, addresses: none}", locked)


INFINIBAND = (("transport: roce, speed_gbps: 400, mtu: 9000, rails: 2, qos: dcqcn", "transport: infiniband, rails: 2"),)


def test_infiniband_vfs_have_guids_and_follow_their_port():
    ports = {f"compute/{r}": LockedPort(pci=f"0000:{r + 1}8:00.0", guid=f"a088:c203:0012:34c{r}") for r in range(2)}
    locked = Lock(hosts={host: LockedHost(ports=ports) for host in ("gpu01",)})
    one = (('"gpu[01-03]"', "gpu01"), ('"10.0.0.[11-13]"', '"10.0.0.11"'))
    found = wants("sriov: {network: compute, vfs: 2}", locked, *INFINIBAND, *one)["gpu01"]["sriov"]
    vfs = [vf for port in found.ports for vf in port.vfs]
    assert {vf.link_state for vf in vfs} == {"auto"}
    assert {vf.mac for vf in vfs} == {None}
    assert len({guid for vf in vfs for guid in (vf.node_guid, vf.port_guid)}) == 8
    assert found.ports[0].guid == "a0:88:c2:03:00:12:34:c0"


@pytest.mark.parametrize("key", ["vlan: 5", "spoofchk: true", "trust: true"])
def test_infiniband_vfs_have_nothing_of_ethernet(key):
    found = refusals(with_profile(f"sriov: {{network: compute, vfs: 2, {key}}}"), *INFINIBAND)
    assert any("is InfiniBand, whose VFs have no" in message for message in found)


def test_firmware_of_a_port_by_the_number_of_its_function():
    text = (
        "firmware: {network: compute, num_of_vfs: 16, link_type: ethernet, qos: true, parameters: {ATS_ENABLED: false}}"
    )
    (first, _) = wants(text)["gpu01"]["firmware"].ports
    assert first.parameters == {
        "ATS_ENABLED": "False",
        "CNP_802P_PRIO_P1": "6",
        "CNP_DSCP_P1": "48",
        "LINK_TYPE_P1": "ETH",
        "NUM_OF_VFS": "16",
        "ROCE_CC_PRIO_MASK_P1": "8",
        "SRIOV_EN": "True",
    }


def dual_port(serials):
    pcis = ("0000:18:00.0", "0001:18:00.1")
    ports = {f"compute/{r}": LockedPort(pci=pcis[r], mac=f"02:00:00:00:01:0{r}", serial=serials[r]) for r in range(2)}
    return Lock(hosts={"gpu01": LockedHost(ports=ports)})


@pytest.mark.parametrize(("serials", "refused"), [(("SN1", "SN1"), True), (("SN1", "SN2"), False)])
def test_two_ports_of_a_card_cannot_want_different_things(serials, refused):
    text = """firmware:
      - {network: compute, rail: 0, num_of_vfs: 8}
      - {network: compute, rail: 1, num_of_vfs: 4}"""
    one = (('"gpu[01-03]"', "gpu01"), ('"10.0.0.[11-13]"', '"10.0.0.11"'))
    if refused:
        with pytest.raises(GpufabError, match="compute/0 wants 8, compute/1 wants 4"):
            wants(text, dual_port(serials), *one)
    else:
        assert wants(text, dual_port(serials), *one)


def test_port_parameters_of_the_second_port_are_p2():
    one = (('"gpu[01-03]"', "gpu01"), ('"10.0.0.[11-13]"', '"10.0.0.11"'))
    text = "firmware: {network: compute, port_parameters: {CNP_DSCP: 48}}"
    ports = wants(text, dual_port(("SN1", "SN1")), *one)["gpu01"]["firmware"].ports
    assert [set(port.parameters) for port in ports] == [{"CNP_DSCP_P1"}, {"CNP_DSCP_P2"}]


def test_what_a_host_is_told_survives_json_and_is_all_an_argument():
    text = "sriov: {network: compute, vfs: 2, unmanaged: true}\n    firmware: {network: compute, num_of_vfs: 8}"
    for feature in ("sriov", "firmware"):
        want = wants(text)["gpu01"][feature]
        assert decode(type(want), encode(want)) == want
        assert set(encode(want)) <= set(argument_spec(type(want)))
