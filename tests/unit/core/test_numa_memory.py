"""Settings of the kernel, huge pages, ports that share a subnet, and files that would set it all otherwise."""

from dataclasses import replace

import pytest

from gpufab_cli.lab.hardware.sysfs.numa import THP
from gpufab_cli.module_utils import planning
from gpufab_cli.module_utils.change import Impact, Unknown
from gpufab_cli.module_utils.converge import Status
from gpufab_cli.module_utils.numa import sysctls
from gpufab_cli.module_utils.numa.feature import Numa
from gpufab_cli.module_utils.numa.want import NumaWant, SharedSubnet
from tests.fakes import FakeHost
from tests.machine import LabHost
from tests.unit.core.test_numa_irqs import codes, plan, run, want

OCI = SharedSubnet(arp_ignore=2, arp_announce=1, rp_filter=2)
CONF = "/proc/sys/net/ipv4/conf"


def test_settings_of_the_node_are_one_step_and_undone_as_one(tmp_path):
    host = LabHost(tmp_path, rails=1)
    wish = NumaWant(balancing=False, zone_reclaim=0, transparent_hugepages="madvise")
    (step,) = [result.step for result in run(host, wish).steps if result.step.name == "numa kernel"]
    assert [change.path[1] for change in step.changes] == ["balancing", "transparent_hugepages"]
    assert host.read("/proc/sys/kernel/numa_balancing") == "0"
    assert host.read(f"/sys{THP}") == "always [madvise] never"
    assert plan(host, wish).clean


def test_a_kernel_without_numa_balancing_does_not_do_it(tmp_path, monkeypatch):
    host = LabHost(tmp_path, rails=1)
    monkeypatch.setattr("tests.machine.OWN_PROC", ())
    assert plan(host, NumaWant(balancing=False)).findings == ()
    assert codes(host, NumaWant(balancing=True)) == {("numa.unsupported", "kernel")}


def test_huge_pages_are_on_nodes_with_cpus_and_memory_alone(tmp_path):
    host = LabHost(tmp_path, "gb200", rails=1, cpus=None)
    run(host, NumaWant(hugepages={"2M": 64, "1G": 2}))
    nodes = host.hardware.machine.numa
    bindable = {f"node{node.id}" for node in nodes if node.cpus and node.memory_gib}
    assert {key.split("/")[0] for key in host.hardware.state.numa.hugepages} == bindable
    assert any(not node.cpus for node in nodes)


def test_huge_pages_that_the_kernel_does_not_find_are_a_failure_and_given_back(tmp_path):
    host = LabHost(tmp_path, rails=1)
    result = run(host, NumaWant(balancing=False, hugepages={"1G": 4000})).steps[-1]
    assert result.status is Status.FAILED
    assert "did not stick: hugepages/node0/1G is 921, not 4000" in result.reason
    assert set(host.hardware.state.numa.hugepages.values()) == {0}
    assert host.read("/proc/sys/kernel/numa_balancing") == "0"


def test_pages_of_a_size_that_the_kernel_does_not_have(tmp_path):
    host = LabHost(tmp_path, rails=1)
    assert codes(host, NumaWant(hugepages={"64K": 1})) == {("numa.unsupported", "hugepages")}
    assert codes(host, NumaWant(hugepages={"64K": 0})) == set()


def test_huge_pages_of_nodes_that_cannot_be_read_are_unknown_and_no_pass(tmp_path, monkeypatch):
    host, broken = LabHost(tmp_path, rails=1), "/sys/devices/system/node/node1/cpulist"
    plain = host.read
    monkeypatch.setattr(host, "read", lambda path: Unknown(path) if path == broken else plain(path))
    (said,) = plan(host, NumaWant(hugepages={"2M": 64})).findings
    assert (said.code, said.unknown) == ("numa.hugepages", True)


@pytest.mark.parametrize(("nodes", "told"), [(2, set()), (8, {("numa.nodes", "nodes")})])
def test_the_number_of_nodes_is_checked(tmp_path, nodes, told):
    assert codes(LabHost(tmp_path, rails=1), NumaWant(nodes=nodes)) == told


# ---- ports that share a subnet ---------------------------------------------------------------------------------------


@pytest.fixture
def sharing(tmp_path):
    host = LabHost(tmp_path, rails=3)
    names = [port.netdev for port in host.hardware.machine.ports]
    host.give(**dict(zip(names, ("198.51.100.72/24", "198.51.100.73/24", "10.9.0.1/24"), strict=True)))
    return host, names


def test_report_42_ports_in_one_subnet_are_told_and_set_one_by_one(sharing):
    host, names = sharing
    assert {path for code, path in codes(host, want(host, irq=None)) if code == "numa.shared-subnet"} == {
        "0000:18:00.0",
        "0000:40:00.0",
    }
    wish = want(host, irq=None, shared_subnet=OCI)
    refused = {result.step.name for result in run(host, wish).steps if result.status is Status.REFUSED}
    assert refused == {"numa compute/0 subnet", "numa compute/1 subnet"}  # ARP is answered less: consent
    run(host, wish, allow=frozenset({Impact.TRAFFIC}), busy_ok=True)
    values = {name: [host.read(f"{CONF}/{name}/{key}") for key in sysctls.ARP] for name in ("all", *names)}
    assert values == {"all": ["0"] * 3, names[0]: ["2", "1", "2"], names[1]: ["2", "1", "2"], names[2]: ["0"] * 3}
    assert plan(host, wish).clean


def test_one_port_read_back_alone_still_shares(sharing):
    host, _ = sharing
    wish = want(host, irq=None, shared_subnet=OCI)
    alone = Numa().only(wish, "0000:18:00.0")
    assert {change.path[1] for step in plan(host, alone).steps for change in step.changes if len(change.path) > 1} == {
        f"enp24s0np0/{name}" for name in sysctls.ARP
    }


@pytest.mark.parametrize(
    ("every", "wanted", "told"), [("1", 0, True), ("2", 1, True), ("1", 2, False), ("0", 0, False)]
)
def test_the_kernel_takes_the_larger_of_all_and_the_interface(sharing, every, wanted, told):
    host, _ = sharing
    host.files[f"{CONF}/all/rp_filter"] = every
    wish = want(host, irq=None, shared_subnet=SharedSubnet(rp_filter=wanted))
    assert (("numa.sysctl-overruled", "0000:18:00.0") in codes(host, wish)) is told


@pytest.mark.parametrize(
    ("name", "values", "stricter"),  # of the interface before and after, and of all
    [
        ("rp_filter", (0, 2, 0), True),  # unreachable sources are let in no more
        ("rp_filter", (2, 1, 0), True),
        ("rp_filter", (1, 2, 0), False),  # 2 is the loose one
        ("rp_filter", (1, 0, 0), False),
        ("rp_filter", (0, 1, 2), False),  # the kernel takes the larger number, and that stays 2
        ("rp_filter", (0, 2, 1), False),  # 1 before, 2 after
        ("arp_ignore", (0, 1, 0), True),
        ("arp_ignore", (1, 2, 0), True),
        ("arp_ignore", (2, 1, 0), False),
        ("arp_ignore", (0, 1, 2), False),
        ("arp_ignore", (3, 1, 0), True),  # 3 answers for addresses of other interfaces
        ("arp_ignore", (0, 1, 8), False),
        ("arp_announce", (0, 2, 0), False),
    ],
)
def test_what_refuses_more_than_before_needs_consent_to_traffic(sharing, name, values, stricter):
    (host, names), (before, after, every) = sharing, values
    host.files[f"{CONF}/all/{name}"] = str(every)
    for netdev in names:
        host.files[f"{CONF}/{netdev}/{name}"] = str(before)
    wish = want(host, irq=None, shared_subnet=SharedSubnet(**{name: after}))
    steps = [step for step in plan(host, wish).steps if step.name.startswith("numa compute")]
    assert [step.name for step in steps] == ["numa compute/0 subnet", "numa compute/1 subnet"]
    assert {step.impact for step in steps} == {frozenset({Impact.TRAFFIC}) if stricter else frozenset()}


def test_a_name_with_a_dot_is_a_path_of_its_own(tmp_path):
    host = FakeHost({f"{CONF}/bond0.100/arp_ignore": "1"})
    assert sysctls.read(host, sysctls.of_interface("bond0.100", "arp_ignore")) == "1"


@pytest.mark.parametrize(
    ("carries", "impact", "blocked"),
    [
        ((), frozenset({Impact.TRAFFIC}), ""),
        (("the default route",), frozenset({Impact.MANAGEMENT_PORT, Impact.TRAFFIC}), ""),
        (Unknown("ip fails"), frozenset({Impact.TRAFFIC}), "cannot tell what enp24s0np0 carries: ip fails"),
    ],
)
def test_a_port_that_the_node_depends_on_needs_consent(sharing, carries, impact, blocked):
    host, _ = sharing
    wish = want(host, irq=None, shared_subnet=OCI)
    found = planning.take(host, {"numa": Numa()}, {"numa": wish})
    first, *others = found.devices.nics
    first = replace(first, netdevs=(replace(first.netdev, carries=carries),))
    found = replace(found, devices=replace(found.devices, nics=(first, *others)))
    step = next(step for step in Numa().plan(found, wish).steps if step.device == "0000:18:00.0")
    assert (step.impact, step.blocked) == (impact, blocked)


def test_addresses_that_are_not_known_are_no_pass(sharing):
    host, _ = sharing
    host.addresses = "nonsense"
    wish = want(host, irq=None, shared_subnet=OCI)
    found = [f for f in plan(host, wish).findings if f.code == "numa.shared-subnet"]
    assert len(found) == 3
    assert all(finding.unknown for finding in found)


# ---- files -----------------------------------------------------------------------------------------------------------

RP, ALL = "net/ipv4/conf/ens1/rp_filter", "net/ipv4/conf/all/rp_filter"
SYSTEMD = "net.ipv4.conf.default.rp_filter = 2\nnet.ipv4.conf.*.rp_filter = 2\n-net.ipv4.conf.all.rp_filter\n"


@pytest.mark.parametrize(
    ("files", "name", "found"),
    [
        ({}, RP, None),
        ({"/usr/lib/sysctl.d/50-default.conf": SYSTEMD}, RP, "/usr/lib/sysctl.d/50-default.conf"),
        ({"/usr/lib/sysctl.d/50-default.conf": SYSTEMD}, ALL, None),
        ({"/etc/sysctl.d/10-a.conf": "net/ipv4/conf/ens1/rp_filter=2 \n"}, RP, "/etc/sysctl.d/10-a.conf"),
        ({"/etc/sysctl.d/10-a.conf": "# net.ipv4.conf.ens1.rp_filter=2\n; x=1\n\n"}, RP, None),
        # a file hides its namesake in a later folder, and is read in the order of the names
        (
            {"/etc/sysctl.d/50-default.conf": "", "/usr/lib/sysctl.d/50-default.conf": SYSTEMD},
            RP,
            None,
        ),
        (
            {
                "/etc/sysctl.d/10-a.conf": "net.ipv4.conf.ens1.rp_filter=0\n",
                "/run/sysctl.d/90-b.conf": "net.ipv4.conf.ens1.rp_filter = 2\n",
            },
            RP,
            "/run/sysctl.d/90-b.conf",
        ),
        # one that names it goes before a pattern, wherever it stands
        (
            {
                "/etc/sysctl.d/10-a.conf": "-net.ipv4.conf.ens1.rp_filter = 0\n",
                "/usr/lib/sysctl.d/50-default.conf": SYSTEMD,
            },
            RP,
            None,
        ),
        ({"/etc/sysctl.conf": "net.ipv4.conf.ens1.rp_filter=1\n"}, RP, "/etc/sysctl.conf"),
        ({"/etc/sysctl.d/README": "net.ipv4.conf.ens1.rp_filter=1\n"}, RP, None),
        (
            {"/etc/sysctl.d/a.conf": "net.ipv4.conf.bond0/100.arp_ignore = 0\n"},
            "net/ipv4/conf/bond0.100/arp_ignore",
            None,
        ),
        (
            {"/etc/sysctl.d/a.conf": "net/ipv4/conf/bond0.100/arp_ignore = 1\n"},
            "net/ipv4/conf/bond0.100/arp_ignore",
            "/etc/sysctl.d/a.conf",
        ),
    ],
)
def test_files_that_set_it_otherwise(files, name, found):
    lines = sysctls.contradictions(FakeHost(files), {name: "0"})
    assert [line[0] for line in lines] == ([found] if found else [])


def test_a_contradiction_is_told_also_while_the_value_is_right(tmp_path):
    host = LabHost(tmp_path, rails=1)
    wish = NumaWant(balancing=False)
    run(host, wish)
    host.files["/etc/sysctl.d/99-site.conf"] = "kernel.numa_balancing = 1\n"
    assert codes(host, wish) == {("numa.sysctl-contradicted", "sysctl")}
    assert codes(host, replace(wish, balancing=True)) == set()
