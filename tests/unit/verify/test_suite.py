"""The whole suite against nodes made of text: a false ssh prints what read.sh would, with one thing wrong a node."""

import json
import os
import stat
from xml.etree import ElementTree

import pytest

from gpufab_cli import cli
from gpufab_cli.spec.lock import dump
from gpufab_cli.verify.expected import expected
from tests.fabrics import changed, lock

from .nodes import ACCESS, healthy, printed

pytestmark = pytest.mark.process

SSH = """\
#!/bin/sh
for option in BatchMode=yes StrictHostKeyChecking=yes User=ops; do
    case " $* " in
        *" $option "*) ;;
        *) echo "without $option: $*" >&2; exit 2 ;;
    esac
done
while [ $# -gt 2 ]; do shift; done
[ -e "{folder}/$1" ] && exec cat "{folder}/$1"
echo "ssh: connect to host $1 port 22: No route to host" >&2
exit 255
"""
P0, P1 = "0000:18:00.0", "0000:28:00.0"
CAP = "pfc-cap 8 macsec-bypass off delay 7 \n"
OFF = f"{CAP}prio-pfc 0:off 1:off 2:off 3:off 4:off 5:off 6:off 7:off "
ON = "pfc-cap 8 macsec-bypass off delay {} \nprio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off "
BUFFERS = '{"prio_buffer": [0, 0, 0, 0, 0, 0, 0, 0], "buffer_size": [130944, 200000, 0, 0, 0, 0, 0, 0]}'
ETH0 = "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth0 \n"
ETH1 = "link mlx5_1/1 state ACTIVE physical_state LINK_UP netdev eth1 \n"
NO_RDMA = [
    ("compute/1", "rdma", "fail", "0 RDMA devices on eth1"),
    *(("compute/1", check, "unknown", "0 RDMA devices") for check in ("gid", "traffic-class", "rdma-cm")),
]
GARBAGE = ("0", "\x7fELF")
LINK = "3: eth0: <UP> mtu {} qdisc mq state {} mode DEFAULT\\    link/ether {} brd ff"

# What is wrong on a node, and the one check that must say so, how, and in which words.
FAULTS = [
    ({}, None),
    ({"program": ("2", "python3: can't open file")}, ("", "program", "fail", "can't open file")),
    ({"program": ("1", "zipimport.ZipImportError")}, ("", "program", "fail", "exit 1")),
    ({"unit-files": ("absent", "")}, ("", "units", "fail", "not all restore units are there")),
    ({"units": ("1", "gpufab-restore@late.service: bad")}, ("", "units", "fail", "late.service: bad")),
    ({"units": ("absent", "")}, ("", "units", "unknown", "systemd-analyze verify: not there")),
    ({"enabled": ("1", "enabled\ndisabled")}, ("", "enabled", "fail", "enabled and disabled")),
    ({"ended": ("0", "failed\ninactive")}, ("", "restored", "fail", "failed and inactive")),
    ({"rule": ("absent", "")}, ("", "rule", "fail", "not there")),
    ({"rule": ("0", 'ACTION=="add", GOTO="end"\n')}, ("", "rule", "fail", "GOTO end leads nowhere")),
    ({"rule-verified": ("1", "Fail: 1")}, ("", "rule", "fail", "udevadm verify: Fail: 1")),
    ({"rule-verified": ("1", "Unknown command verb verify.")}, None),
    ({"access": ("0", ACCESS.replace("-rw-r--r--", "-rw-r-----"))}, ("", "access", "fail", "gpufab.pyz is -rw-r-----")),
    (
        {"access": ("0", ACCESS.replace("drwxr-xr-x", "drwx------"))},
        ("", "access", "fail", "/usr is drwx------, /usr/local"),
    ),
    (
        {"access": ("0", ACCESS.replace("-rwxr-xr-x", "-rwxr-xr--"))},
        ("", "access", "fail", "-bind is -rwxr-xr--"),
    ),
    ({"access": ("0", "")}, ("", "access", "unknown", "no mode of the restore program")),
    ({"access": GARBAGE}, ("", "access", "unknown", "no mode of the restore program")),
    ({"access": ("absent", "")}, ("", "access", "unknown", "stat: not there")),
    ({"desired/roce.json": ("0", "{")}, ("", "desired", "fail", "roce.json: ")),
    ({"desired/roce.json": ("0", '{"want": {}}')}, ("", "desired", "fail", "not what fabric.yml says")),
    ({"desired/sriov.json": ("0", "{}")}, ("", "desired", "fail", "sriov.json")),
    ({"uid": ("0", "1000")}, ("", "desired", "unknown", "only root")),
    ({f"{P0}/link": ("0", LINK.format(9000, "UP", "02:00:00:00:63:63"))}, ("compute/0", "device", "fail", "63:63")),
    ({f"{P0}/link": ("0", LINK.format(9000, "DOWN", "{mac}"))}, ("compute/0", "link", "fail", "eth0 is DOWN")),
    ({f"{P0}/link": ("0", LINK.format(1500, "UP", "{mac}"))}, ("compute/0", "mtu", "fail", "MTU 1500")),
    ({"rdma": ("0", ETH0)}, NO_RDMA),
    ({"rdma": ("0", ETH0), f"{P1}/bonded": ("0", "eth0\neth1")}, None),  # a RoCE LAG
    ({"rdma": ("0", f"{ETH0}{ETH1}".replace("ACTIVE", "DOWN", 1))}, ("compute/0", "rdma", "fail", "mlx5_0 is DOWN")),
    ({f"{P1}/gids": ("0", "3 fe80:0000:0000:0000:0000:0000:0000:0001 RoCE v2")}, ("compute/1", "gid", "fail", "fe80")),
    ({f"{P1}/pause": ("0", '[{"rx": true, "tx": false}]')}, ("compute/1", "pause", "fail", "on: rx")),
    ({f"{P1}/pause": GARBAGE}, ("compute/1", "pause", "unknown", "no known release")),
    ({f"{P1}/dscp": ("0", "")}, ("compute/1", "dscp-map", "fail", "no DSCP is mapped")),
    ({f"{P1}/dscp": ("0", "dscp-prio 26:4 ")}, ("compute/1", "dscp-map", "fail", "DSCP 0 has priority none")),
    ({f"{P1}/dscp": ("hung", "")}, ("compute/1", "dscp-map", "unknown", "no answer in time")),
    ({f"{P0}/pfc": ("0", OFF)}, ("compute/0", "pfc", "fail", "PFC on for priority none, wanted 3")),
    ({f"{P0}/pfc": ("0", f"{CAP}prio-pfc 0:")}, ("compute/0", "pfc", "unknown", "no known release")),
    ({f"{P0}/ets": ("0", "tc-bw 0:1")}, ("compute/0", "ets", "unknown", "no known release")),
    ({f"{P0}/pfc": ("0", ON.format(40))}, ("compute/0", "cable", "fail", "40 m of cable, wanted 7")),
    ({f"{P0}/buffers": ("0", BUFFERS)}, ("compute/0", "buffers", "fail", "prio_buffer is 0 0 0 0")),
    (
        {f"{P0}/buffers": ("1", "Attribute read: Operation not supported")},
        ("compute/0", "buffers", "unknown", "not sup"),
    ),
    ({f"{P0}/dcqcn": ("0", "rpg_ai_rate 50\nmin_time_between_cnps 4")}, ("compute/0", "dcqcn", "fail", "50, wanted 5")),
    ({f"{P0}/dcqcn": ("0", "rpg_ai_rate 5")}, ("compute/0", "dcqcn", "unknown", "no min_time_between_cnps")),
    ({f"{P0}/np": ("0", "\n".join("0" * 8))}, ("compute/0", "ecn", "fail", "CNPs are not sent")),
    ({f"{P0}/np": ("0", "\n".join("10000000"))}, None),  # any priority makes the port send CNPs
    ({f"{P0}/rp": ("0", "\n".join("11101111"))}, ("compute/0", "ecn", "fail", "priority 3 does not react")),
    ({f"{P0}/rp": ("absent", "")}, ("compute/0", "ecn", "unknown", "ecn/roce_rp: not there")),
    ({f"{P0}/cnp": ("0", "48\n0")}, ("compute/0", "cnp", "fail", "priority 0, wanted 48 and 6")),
    ({f"{P0}/traffic-class": ("0", "")}, ("compute/0", "traffic-class", "fail", "no traffic class is forced")),
    ({f"{P0}/traffic-class": ("0", "Global tclass=10")}, ("compute/0", "traffic-class", "fail", "10 (DSCP 2)")),
    ({f"{P0}/traffic-class": ("0", "Global tclass=104")}, None),  # the ECN bits do not select the class
    ({f"{P0}/rdma-cm": ("0", "0\nRoCE v2")}, ("compute/0", "rdma-cm", "fail", "ToS 0")),
    ({f"{P0}/rdma-cm": ("0", "106\nIB/RoCE v1")}, ("compute/0", "rdma-cm", "fail", "mode IB/RoCE v1")),
    ({f"{P0}/rdma-cm": ("absent", "")}, ("compute/0", "rdma-cm", "fail", "no defaults")),
    ({f"{P0}/rdma-cm": ("unloaded", "")}, ("compute/0", "rdma-cm", "unknown", "not loaded")),
]
MORE = """\
    traffic_class: true
    cable_m: 7
    dcqcn: {rpg_ai_rate: 5, min_time_between_cnps: 4}
    buffers: {priority: [0, 0, 0, 1, 0, 0, 0, 0], bytes: [130944, 200000, 0, 0, 0, 0, 0, 0]}
"""
PFC = next(f"gpu{n:02d}" for n, (_, wanted) in enumerate(FAULTS, 1) if wanted and wanted[1:3] == ("pfc", "fail"))
UNREACHABLE, CUT = len(FAULTS) + 1, len(FAULTS) + 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A fabric of a node a fault, one that nobody can reach, and one that says half of it; and the ssh to them."""
    folder = tmp_path_factory.mktemp("verify")
    ssh = folder / "bin" / "ssh"
    ssh.parent.mkdir()
    nodes = folder / "nodes"
    nodes.mkdir()
    ssh.write_text(SSH.format(folder=nodes))
    ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
    text = changed(
        ("qos: dcqcn}", 'qos: dcqcn, addressing: {ipv4: "10.10.{rail}.{host}/24"}}'),
        ("    ets: {", f"{MORE}    ets: {{"),
        ("gpu[01-03]", f"gpu[01-{CUT}]"),
        (', address: "10.0.0.[11-13]"', ""),
    )
    (folder / "fabric.yml").write_text(text)
    (folder / "fabric.lock.yml").write_text(dump(lock(hosts=range(1, CUT + 1))))
    for number, node in enumerate(expected(folder / "fabric.yml"), 1):
        sections = healthy(number, node.wishes["roce"])
        if number <= len(FAULTS):
            mac = f"02:00:00:00:{number:02x}:00"
            sections |= {name: (code, t.replace("{mac}", mac)) for name, (code, t) in FAULTS[number - 1][0].items()}
        if number != UNREACHABLE:
            said = printed(sections)
            (nodes / node.host).write_text(said[: len(said) // 2] if number == CUT else said)
    return folder


def verify(folder, *argv):
    """The exit code of `gpufab verify`."""
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{folder / 'bin'}:{path}"
    try:
        return cli.run(["verify", "-f", str(folder / "fabric.yml"), *argv])
    finally:
        os.environ["PATH"] = path


def test_each_fault_is_told_by_its_own_check_and_by_no_other(folder, capfd):
    report = folder / "junit.xml"
    assert verify(folder, "--format", "json", "--junit", str(report)) == 1
    results = json.loads(capfd.readouterr().out)["results"]
    odd = {f"gpu{number:02d}": [] for number in range(1, CUT + 1)}
    for result in results:
        if result["status"] != "pass":
            odd[result["host"]].append(result)
    for number, (_, wanted) in enumerate(FAULTS, 1):
        found = odd[f"gpu{number:02d}"]
        all_wanted = wanted if isinstance(wanted, list) else [wanted] if wanted else []
        assert [(r["port"], r["check"], r["status"]) for r in found] == [item[:3] for item in all_wanted], number
        assert all(words in r["detail"] for r, (*_, words) in zip(found, all_wanted, strict=True)), found
    for number, words in ((UNREACHABLE, "No route to host"), (CUT, "cut short")):
        (only,) = [r for r in results if r["host"] == f"gpu{number:02d}"]
        assert (only["check"], only["status"]) == ("reachable", "unknown")
        assert words in only["detail"]
    suite = ElementTree.parse(report).getroot()[0]  # noqa: S314 (our own file)
    failures = [result for result in results if result["status"] == "fail"]
    assert (suite.get("failures"), suite.get("errors")) == (str(len(failures)), "0")


@pytest.mark.parametrize("limit", ["gpu06", f"gpu{UNREACHABLE}"])
def test_what_is_unknown_is_not_proven(folder, capfd, limit):
    """A node in order (0) and one that is not (1) are in the tests below."""
    assert verify(folder, "--limit", limit) == 3


def test_the_table_has_a_column_for_hosts_that_came_out_alike(folder, capfd):
    assert verify(folder, "--limit", f"gpu01,gpu12,{PFC}", "-k", "pfc or rdma-cm") == 1
    out = capfd.readouterr().out
    rows = [line.split() for line in out.splitlines()]
    assert ["check", "gpu[01,12]", PFC] in rows
    assert ["pfc", "pass", "fail", "1/2"] in rows
    assert ["rdma-cm", "pass", "pass"] in rows
    assert f"fail: {PFC} compute/0 pfc: PFC on for priority none, wanted 3" in out
    assert "11 pass, 1 fail" in out


def test_a_run_that_checks_nothing_fails_by_name_and_in_junit_too(folder, capfd):
    report = folder / "nothing.xml"
    argv = ("--limit", "gpu01", "-k", "no-such-check", "--junit", str(report))
    assert verify(folder, *argv) == 1
    assert "something-checked: nothing was checked: -k no-such-check: no check matches" in capfd.readouterr().out
    (suite,) = ElementTree.parse(report).getroot()  # noqa: S314 (our own file)
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert "nothing was checked" in ElementTree.tostring(suite, "unicode")


def test_what_is_not_wanted_is_not_checked(folder, capfd, tmp_path):
    bare = tmp_path / "fabric.yml"
    text = (folder / "fabric.yml").read_text().replace("    ets: {3: 60, 0: 40}\n", "")
    bare.write_text(text.replace(MORE, "    rdma_cm: null\n").replace(", mtu: 9000", ""))
    (tmp_path / "fabric.lock.yml").write_text((folder / "fabric.lock.yml").read_text())
    (tmp_path / "bin").symlink_to(folder / "bin")
    assert verify(tmp_path, "--limit", "gpu01", "--format", "json") == 1  # its desired.d is another
    checks = {result["check"] for result in json.loads(capfd.readouterr().out)["results"]}
    assert {"pfc", "dscp-map", "ecn"} <= checks
    assert not checks & {"ets", "traffic-class", "rdma-cm", "mtu", "cable", "buffers", "dcqcn"}


def test_the_site_s_own_pytest_settings_do_not_reach_the_suite(folder, capfd, monkeypatch):
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    assert verify(folder, "--limit", "gpu01") == 0
