"""Services that write down how the ports were when they started: one that starts jobs, one of the network."""

from tests.vm.ports_of import Shell

# Writes down what each port was like at the moment it started.
_WITNESS = """\
#!/bin/sh
for port in /sys/class/net/rail*; do
    port=${port##*/}
    printf '%s %s %s\\n' "$(cut -d' ' -f1 /proc/uptime)" "$port" "$(dcb pfc show dev "$port" | tr -s ' \\n' ' ')"
done >"/var/lib/witness-$1"
ls /sys/class/net | grep -c '^rail[0-9]$' >>"/var/lib/witness-$1" || :
"""
_UNIT = """\
[Unit]
Description=witness: {name}
{order}
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/witness {name}
[Install]
WantedBy=multi-user.target
"""
WITNESSES = {
    "slurmd": "",  # the site's own says nothing about ports
    "network": "After=network-pre.target\nBefore=systemd-networkd.service network.target",
}


def install(sh: Shell) -> None:
    """Services that record how the ports were when they started."""
    sh(f"cat >/usr/local/sbin/witness <<'END'\n{_WITNESS}END\nchmod 755 /usr/local/sbin/witness")
    for name, order in WITNESSES.items():
        unit = _UNIT.format(name=name, order=order)
        sh(f"cat >/etc/systemd/system/{_service(name)} <<'END'\n{unit}END\nsystemctl -q enable {_service(name)}")


def _service(name: str) -> str:
    return "slurmd.service" if name == "slurmd" else f"witness-{name}.service"
