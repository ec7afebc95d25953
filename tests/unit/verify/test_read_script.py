"""The functions of read.sh on a tree of their own, by each shell that a node may have as sh.

Every file there answers a read of one byte with its end, as CPU lists of a real /sys do: dash's `read` asks so, and
gets nothing of them.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path

import pytest

pytestmark = pytest.mark.process
SCRIPT = (resources.files("gpufab_cli.verify") / "read.sh").read_text()
FUNCTIONS = SCRIPT.partition("# ---- from here on it looks")[0]
SHELLS = [shell for shell in ("dash", "sh", "bash") if shutil.which(shell)]
P0, P1, GPU, SWITCH = "0000:18:00.0", "0000:18:00.1", "0000:1b:00.0", "0000:07:00.0"
PCI = "sys/devices/pci0000:17/0000:17:00.0"
BOND = "sys/class/net/bond0"
NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
GID = "0000:0000:0000:0000:0000:ffff:0a0a:0001"
FILES = {
    "sys/devices/system/node/node0/cpulist": "0-3,8",
    "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:       5072632 kB\nNode 0 MemFree: 1 kB",
    "sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages": "64",
    "sys/devices/system/node/node1/cpulist": "",  # a node of memory alone
    "sys/devices/system/node/node1/meminfo": "Node 1 MemTotal:       9 kB",
    "sys/devices/system/cpu/cpu0/cpuidle/state0/name": "POLL",
    "sys/devices/system/cpu/cpu0/cpuidle/state0/latency": "0",
    "sys/devices/system/cpu/cpu0/cpuidle/state0/disable": "1",
    f"{PCI}/{P0}/local_cpulist": "0-3,8",
    f"{PCI}/{P0}/msi_irqs/70": "msix",
    f"{PCI}/{P0}/msi_irqs/71": "msix",  # which no driver has asked for
    f"{PCI}/{P0}/sriov_numvfs": "2",
    f"{PCI}/{P0}/vendor": "0x15b3",
    f"{PCI}/{P0}/class": "0x020000",
    f"{PCI}/{P0}/device": "0x1021",
    f"{PCI}/{P0}/uevent": "DRIVER=mlx5_core\nPCI_CLASS=20000\nPCI_ID=15B3:1021",
    f"{PCI}/{P0}/net/eth0/address": "02:00:00:00:00:01",
    f"{PCI}/{P0}/net/eth0/operstate": "up",
    f"{PCI}/{P0}/infiniband/mlx5_0/node_guid": "a088:c203:0001:4a00",
    f"{PCI}/{P0}/infiniband/mlx5_0/board_id": "MT_0000000838",
    f"{PCI}/{P0}/infiniband/mlx5_0/fw_ver": "28.43.2026",
    f"{PCI}/{P0}/infiniband/mlx5_0/ports/1/link_layer": "Ethernet",
    f"{PCI}/{P0}/infiniband/mlx5_0/ports/1/state": "4: ACTIVE",
    f"{PCI}/{P0}/infiniband/mlx5_0/ports/1/gids/0": "fe80:0000:0000:0000:0000:00ff:fe00:0001",
    f"{PCI}/{P0}/infiniband/mlx5_0/ports/1/gids/1": NO_GID,
    f"{PCI}/{P0}/infiniband/mlx5_0/ports/1/gids/10": GID,
    f"{PCI}/{P0}/infiniband/mlx5_0/ports/1/gid_attrs/types/10": "RoCE v2",
    f"{PCI}/{P1}/vendor": "0x15b3",
    f"{PCI}/{P1}/class": "0x020000",
    f"{PCI}/{P1}/net/eth1/address": "02:00:00:00:00:02",
    f"{PCI}/{GPU}/vendor": "0x10de",
    f"{PCI}/{GPU}/class": "0x030200",
    f"{PCI}/{GPU}/device": "0x2330",
    f"{PCI}/{SWITCH}/vendor": "0x10de",
    f"{PCI}/{SWITCH}/uevent": "PCI_CLASS=68000\nPCI_ID=10DE:22A3",
    "sys/class/net/lo/address": "00:00:00:00:00:00",
    f"{BOND}/address": "02:00:00:00:00:01",
    "sys/class/net/bond0.7/address": "02:00:00:00:00:01",
    "proc/irq/70/effective_affinity_list": "2",
    "proc/irq/70/smp_affinity_list": "0-3",
    "proc/sys/net/ipv4/conf/all/arp_ignore": "1",
    "proc/sys/net/ipv4/conf/all/arp_announce": "2",
    "proc/sys/net/ipv4/conf/all/rp_filter": "0",
    "cc/np_cnp_dscp": "48",
    "cc/rp_gd": "11",
}
TOOLS = {
    "ethtool": 'echo "driver: mlx5_core"; echo "version: 25.10-1.2.2 $2"',
    "ip": r'echo "4: eth0: <UP> mtu 9000 \    link/ether 02:00:00:00:00:01 brd ff \    vf 0     link/ether 02:01"',
}
# A call, and what it prints, {} for the tree's root.
CALLS = {
    "nodes": ["node0\t0-3,8\t5072632", "node1\t\t9"],
    "hugepages": ["node0\t2048\t64"],
    "netdevs": [f"{pci}\t{name}" for pci, own in ((P0, "eth0"), (P1, "eth1")) for name in (own, "bond0", "bond0.7")],
    "interrupts": [f"{P0}\t70\t0-3,8\t2"],
    "idle {}/sys/devices/system/cpu": ["POLL\t0\t1"],
    "hcas": [f"{P0}\ta088:c203:0001:4a00\tEthernet\t4: ACTIVE\t?"],  # its rate cannot be read
    "interfaces": [f"{P0}\t02:00:00:00:00:01\tup\t?", f"{P1}\t02:00:00:00:00:02\t?\t?"],
    "versions": [f"{P0}\tMT_0000000838\t28.43.2026"],
    "gids mlx5_0": ["0 fe80:0000:0000:0000:0000:00ff:fe00:0001 ?", f"10 {GID} RoCE v2"],
    "named {}/cc/*": ["np_cnp_dscp 48", "rp_gd 11"],
    "uevents": [f"{SWITCH}\t68000\t10DE:22A3", f"{P0}\t20000\t15B3:1021"],
    "drivers": [f"{P0}\tmlx5_core\t25.10-1.2.2 eth0", f"{P1}\t\t25.10-1.2.2 eth1"],
    "table arp_ignore,arp_announce,rp_filter {}/proc/sys/net/ipv4/conf/* | by_name": ["all\t1\t2\t0"],
    "table class,vendor,device {}/sys/bus/pci/devices/* | by_name": [
        f"{SWITCH}\t?\t0x10de\t?", f"{P0}\t0x020000\t0x15b3\t0x1021", f"{P1}\t0x020000\t0x15b3\t?",
        f"{GPU}\t0x030200\t0x10de\t0x2330",
    ],
    "table a,b {}/nothing/*": [],
}  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The tree as FUSE shows it, and as plain files where there is no FUSE: then only the rule below holds the kind."""
    folder = tmp_path_factory.mktemp("read")
    plain, shown = folder / "plain", folder / "shown"
    shown.mkdir()
    for path, text in FILES.items():
        (plain / path).parent.mkdir(parents=True, exist_ok=True)
        (plain / path).write_text(f"{text}\n")
    (plain / PCI / P0 / "driver").symlink_to("../../../../bus/pci/drivers/mlx5_core")
    for name, path in (("eth0", f"{P0}/net/eth0"), ("eth1", f"{P1}/net/eth1")):
        (plain / "sys/class/net" / name).symlink_to(f"../../../{PCI}/{path}")
        (plain / PCI / path / "device").symlink_to("../..")
    for lower, upper in ((f"{PCI}/{P0}/net/eth0", "bond0"), (f"{PCI}/{P1}/net/eth1", "bond0"), (BOND, "bond0.7")):
        (plain / lower / f"upper_{upper}").mkdir()
    (plain / "sys/class/infiniband").mkdir()
    (plain / "sys/class/infiniband/mlx5_0").symlink_to(f"../../../{PCI}/{P0}/infiniband/mlx5_0")
    (plain / PCI / P0 / "infiniband/mlx5_0/device").symlink_to("../..")
    (plain / "sys/bus/pci/devices").mkdir(parents=True)
    for pci in (P0, P1, GPU, SWITCH):
        (plain / "sys/bus/pci/devices" / pci).symlink_to(f"../../../../{PCI}/{pci}")
    helper = Path(__file__).with_name("short_reads.py")
    server = subprocess.Popen([sys.executable, helper, plain, shown], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 10
    while server.poll() is None and not os.path.ismount(shown) and time.monotonic() < deadline:
        time.sleep(0.02)
    try:
        yield shown if os.path.ismount(shown) else plain
    finally:
        if os.path.ismount(shown):
            tool = next((name for name in ("fusermount3", "fusermount") if shutil.which(name)), None)
            subprocess.run([tool, "-u", shown] if tool else ["umount", shown], check=True)
        server.terminate()
        server.wait()


@pytest.fixture(scope="module")
def run(tree, tmp_path_factory):
    """Runs a line with the script's functions, on the tree, by a shell; its output without the tree's own path."""
    tools = tmp_path_factory.mktemp("bin")
    for name, body in TOOLS.items():
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    moved = re.sub(r"(?<![\w/])/(sys|proc)/", rf"{tree}/\1/", FUNCTIONS)

    def run(shell, line):
        script = f"{moved}\nPATH={tools}:$PATH\n{line}\n"
        done = subprocess.run([shell, "-c", script, "read"], capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return done.stdout.splitlines()

    return run


@pytest.mark.skipif("dash" not in SHELLS, reason="there is no dash")
def test_the_files_here_are_at_their_end_for_a_shell_that_reads_byte_by_byte(tree, run):
    if not os.path.ismount(tree):
        pytest.skip("there is no FUSE to show such files with")
    path = tree / "sys/devices/system/node/node0/cpulist"
    assert run("dash", f'read -r cpus <{path}; echo "[$cpus]"; echo "[$(cat {path})]"') == ["[]", "[0-3,8]"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("call", CALLS)
def test_each_function_reads_its_files_in_one_go(tree, run, shell, call):
    assert run(shell, call.replace("{}", str(tree))) == CALLS[call]


@pytest.mark.parametrize("shell", SHELLS)
def test_functions_have_their_number_of_vfs_and_what_the_kernel_tells_of_them(run, shell):
    first, second = run(shell, "functions")
    assert first.startswith(f"{P0}\t2\t4: eth0: ")
    assert first.endswith("vf 0     link/ether 02:01")
    assert second == f"{P1}\tnone\t"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_list_without_an_entry_says_so(run, shell):
    assert run(shell, "printf '' | listed x; echo a | listed y") == [
        "",
        "@@gpufab x 0",
        "none",
        "",
        "@@gpufab y 0",
        "a",
    ]


def test_no_file_is_read_by_the_shell_itself():
    """The rule that holds the kind, with and without FUSE: `read` takes rows of a pipe alone."""
    code = [line.partition("# ")[0].strip() for line in SCRIPT.splitlines()]
    reading = [line for line in code if re.search(r"\bread\b", line)]
    assert reading
    assert all(re.search(r"(?:\| |^)while IFS= read -r \w+; do$", line) for line in reading), reading
    assert not [line for line in code if re.search(r"\bdone\s*<|\bmapfile\b|\breadarray\b", line)]


def test_what_the_script_cannot_do_without_is_said(tmp_path):
    start = "export LC_ALL=C PATH="
    lame = re.sub(f"{start}.*", f"{start}{tmp_path}", SCRIPT)
    done = subprocess.run(["/bin/sh", "-c", lame, "read"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "there is no awk, without which nothing can be looked at\n")
