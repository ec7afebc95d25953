"""The shell function that tells which driver each NIC has, on a tree of its own."""

import os
import re
import subprocess
from importlib import resources


def function(name):
    text = (resources.files("gpufab_cli.verify") / "read.sh").read_text()
    return re.search(rf"^{name}\(\) \{{\n.*?^\}}\n", text, re.MULTILINE | re.DOTALL)[0]


def test_a_nic_without_a_driver_has_none(tmp_path):
    devices, tools = tmp_path / "devices", tmp_path / "bin"
    for pci, vendor in (("0000:18:00.0", "0x15b3"), ("0000:18:00.1", "0x15b3"), ("0000:19:00.0", "0x8086")):
        (devices / pci / "net" / f"eth{pci[-1]}").mkdir(parents=True)
        (devices / pci / "vendor").write_text(f"{vendor}\n")
        (devices / pci / "class").write_text("0x020000\n")
    (devices / "0000:18:00.0/driver").symlink_to("../../../../bus/pci/drivers/mlx5_core")
    tools.mkdir()
    (tools / "ethtool").write_text('#!/bin/sh\necho "driver: mlx5_core"\necho "version: 25.10-1.2.2 $2"\n')
    (tools / "ethtool").chmod(0o755)
    script = function("drivers").replace("/sys/bus/pci/devices", str(devices)) + "drivers\n"
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    found = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=True).stdout
    assert found.splitlines() == ["0000:18:00.0\tmlx5_core\t25.10-1.2.2 eth0", "0000:18:00.1\t\t25.10-1.2.2 eth1"]
