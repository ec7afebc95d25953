"""IP and MAC addresses that two hosts have."""

from dataclasses import replace

from gpufab_cli.audit.fabric import Facts
from gpufab_cli.audit.twice import addresses, macs
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.devices import Devices, Upper
from tests.snapshots import HOSTS, WANTS, in_sync

BOND = Upper("bond0", 9000, True, ("10.9.9.1/24",))


def changed(host, *netdevs):
    """A host whose first ports' netdevs have these fields changed."""
    found = in_sync(host)
    nics = list(found.devices.nics)
    for index, changes in enumerate(netdevs):
        nics[index] = replace(nics[index], netdevs=(replace(nics[index].netdevs[0], **changes),))
    return replace(found, devices=Devices(tuple(nics)))


def findings(**snapshots):
    facts = Facts()
    for host in HOSTS:
        facts.note(host, snapshots.get(host, changed(host, {"addresses": ()}, {"addresses": ()})), WANTS[host])
    return [(finding.code, finding.hosts, finding.evidence) for finding in facts.findings()]


def test_one_address_on_two_hosts():
    mine = [{"addresses": ("10.0.0.1/24", "fe80::1/64")}, {"addresses": ("10.0.1.1/24",)}]
    other = [{"addresses": ()}, {"addresses": ("10.0.0.1/16",)}]
    assert findings(gpu01=changed("gpu01", *mine), gpu03=changed("gpu03", *other)) == [
        ("fabric.duplicate-address", ("gpu01", "gpu03"), "10.0.0.1 is that of ens18np0 on gpu01, ens28np0 on gpu03")
    ]


def test_an_address_of_a_bond_counts_once_a_host():
    bonded = [{"addresses": (), "uppers": (BOND,)}] * 2
    assert findings(gpu01=changed("gpu01", *bonded)) == []
    ((code, hosts, words),) = findings(gpu01=changed("gpu01", *bonded), gpu02=changed("gpu02", *bonded))
    assert (code, hosts) == ("fabric.duplicate-address", ("gpu01", "gpu02"))
    assert words == "10.9.9.1 is that of bond0 on gpu01, bond0 on gpu02"


def test_addresses_of_one_link_are_everywhere():
    local = [{"addresses": ("fe80::1/64", "169.254.3.4/16", "::1/128")}]
    assert addresses(changed("gpu01", *local, {"addresses": ()})) is None


def test_unknown_addresses_are_nobodys():
    assert addresses(changed("gpu01", {"addresses": Unknown("ip hangs")}, {"addresses": Unknown("ip hangs")})) is None


def test_one_mac_on_two_hosts():
    twin = changed("gpu02", {"mac": "02:00:00:00:01:00", "addresses": ()}, {"addresses": ()})
    ((code, hosts, words),) = findings(gpu02=twin)
    assert (code, hosts) == ("fabric.duplicate-mac", ("gpu01", "gpu02"))
    assert words == "02:00:00:00:01:00 is that of ens18np0 on gpu01, ens18np0 on gpu02"


def test_macs_that_are_none():
    assert macs(changed("gpu01", {"mac": ""}, {"mac": "00:00:00:00:00:00"})) is None
