"""Runs the commands that the lab emulates and prints what they answered, as JSON.

Usage: parity.py PORT, as root, with one VF or more on the port. Standard library only. What differs from machine to
machine is taken out: names, addresses, counters. Of JSON only the shape is kept: keys and the types of their values.
"""

import json
import os
import re
import subprocess
import sys
from typing import Any

COMMANDS = """
pfc-set           dcb pfc set dev PORT prio-pfc all:off 3:on
pfc-show          dcb pfc show dev PORT
pfc-show-json     dcb -j pfc show dev PORT
pfc-delay         dcb pfc set dev PORT delay 100
pfc-delay-zero    dcb pfc set dev PORT delay 0
pfc-delay-65535   dcb pfc set dev PORT delay 65535
pfc-delay-65536   dcb pfc set dev PORT delay 65536
pfc-prio-8        dcb pfc set dev PORT prio-pfc 8:on
pfc-word          dcb pfc set dev PORT prio-pfc 3:maybe
pfc-unknown       dcb pfc set dev PORT nonsense
pfc-no-port       dcb pfc show dev nosuch0
ets-set           dcb ets set dev PORT tc-tsa all:strict 0:ets 1:ets tc-bw all:0 0:40 1:60 prio-tc all:0 3:1
ets-show          dcb ets show dev PORT
ets-show-json     dcb -j ets show dev PORT
ets-sum           dcb ets set dev PORT tc-bw all:0 0:50 1:60
app-add           dcb app add dev PORT dscp-prio 26:3
app-add-again     dcb app add dev PORT dscp-prio 26:3
app-add-cs6       dcb app add dev PORT dscp-prio CS6:6
app-show          dcb app show dev PORT
app-show-numbers  dcb -N app show dev PORT
app-show-dscp     dcb -N app show dev PORT dscp-prio
app-show-json     dcb -j app show dev PORT
app-replace       dcb app replace dev PORT dscp-prio 26:4
app-replaced      dcb -N app show dev PORT dscp-prio
app-del           dcb app del dev PORT dscp-prio 26:4
app-del-missing   dcb app del dev PORT dscp-prio 26:4
app-dscp-64       dcb app add dev PORT dscp-prio 64:3
app-flush         dcb app flush dev PORT
app-flushed       dcb app show dev PORT
buffer-show       dcb buffer show dev PORT
buffer-show-json  dcb -j buffer show dev PORT
buffer-prio       dcb buffer set dev PORT prio-buffer all:0 3:1
buffer-prio-shown dcb buffer show dev PORT prio-buffer
pause-off         ethtool -A PORT rx off tx off
pause-show        ethtool -a PORT
pause-show-json   ethtool --json -a PORT
pause-no-port     ethtool -a nosuch0
vf-vlan           ip link set dev PORT vf 0 vlan 100 qos 3
vf-vlan-4096      ip link set dev PORT vf 0 vlan 4096
vf-vlan-none      ip link set dev PORT vf 0 vlan 0
vf-trust          ip link set dev PORT vf 0 trust on
vf-spoofchk       ip link set dev PORT vf 0 spoofchk off
vf-none           ip link set dev PORT vf 120 trust on
link-show         ip -j link show dev PORT
link-no-port      ip link show dev nosuch0
addr-show         ip -j addr show dev PORT
rdma-link         rdma link show
rdma-link-json    rdma -j link show
"""


def main() -> None:
    """Print all answers."""
    port = sys.argv[1]
    found = {}
    for line in COMMANDS.split("\n"):
        if line:
            name, words = line.split(None, 1)
            found[name] = answer(words.replace("PORT", port).split(), port)
    found["cpulist-1-byte"] = short_read("/sys/devices/system/node/node0/cpulist")
    json.dump(found, sys.stdout, indent=1, sort_keys=True)
    print()  # noqa: T201


def answer(argv: "list[str]", port: str) -> "dict[str, object]":
    """Exit status and output of a command, without what is of this machine."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return {"rc": 127, "out": [], "err": ["not found"]}
    out = done.stdout
    shown = shape(json.loads(out)) if out.lstrip()[:1] in ("[", "{") else lines(out, port)
    return {"rc": done.returncode, "out": shown, "err": lines(done.stderr, port)}


def lines(text: str, port: str) -> "list[str]":
    """Lines with one kind of space, and names and numbers of the machine replaced."""
    text = re.sub(r"\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b", "MAC", text)
    text = re.sub(r"\brocep\w+|\bmlx5_\w+", "RDMA", text)
    text = text.replace(port, "PORT")
    rows = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    if rows and all(row.startswith("link RDMA") for row in rows):
        rows = sorted({re.sub(r"netdev \w+", "netdev PORT", row) for row in rows})
    return rows


def shape(value: object) -> object:
    """Keys and types alone; of a list the shapes that occur in it."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in sorted(value.items())}
    if isinstance(value, list):
        found = []
        for inner in value:
            if shape(inner) not in found:
                found.append(shape(inner))
        return found
    return type(value).__name__


def differences(recorded: "dict[str, Any]", found: "dict[str, Any]") -> "list[str]":
    """What is answered otherwise than on the record, a line each."""
    told = []
    for name in sorted({*recorded, *found}):
        for part in ("rc", "out", "err"):
            want, got = (side.get(name, {}).get(part) for side in (recorded, found))
            if want != got:
                told.append(f"{name} {part}: {got}, recorded {want}")
    return told


def short_read(path: str) -> "dict[str, object]":
    """What a file gives to somebody who reads it byte by byte."""
    handle = os.open(path, os.O_RDONLY)
    try:
        read = b""
        while True:
            byte = os.read(handle, 1)
            if not byte:
                break
            read += byte
    finally:
        os.close(handle)
    return {"rc": 0, "out": ["something" if read else "nothing"], "err": []}


if __name__ == "__main__":
    main()
