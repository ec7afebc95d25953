"""Faults of interrupts, memory and PCI Express."""

from gpufab_cli.lab.fault import FaultKind, Strike, drift, model

_PROGRAM = "/usr/local/sbin/irqbalance"
_UNIT = """\
[Unit]
Description=Stands for irqbalance: asks its policy about every interrupt of a device, and moves those that it may
[Service]
EnvironmentFile=-/etc/default/irqbalance
ExecStart=/usr/local/sbin/irqbalance --foreground $IRQBALANCE_ARGS
[Install]
WantedBy=multi-user.target
"""
# The real one does not start in a container, and would see the host's interrupts.
_SCRIPT = """\
#!/bin/sh
policy=true
for argument; do case $argument in --policyscript=*) policy=${argument#*=} ;; esac; done
for path in /sys/bus/pci/devices/*/msi_irqs/*; do
    irq=${path##*/}
    case $("$policy" "${path%/msi_irqs/*}" "$irq") in
    *ban=true*) ;;
    *) echo 0 2>/dev/null >"/proc/irq/$irq/smp_affinity_list" || : ;;
    esac
done
while :; do sleep 3600; done
"""


def _start(strike: Strike) -> None:
    script = (
        'printf %s "$2" >"$1"; chmod 755 "$1"; printf %s "$3" >/etc/systemd/system/irqbalance.service; '
        "systemctl daemon-reload; systemctl enable -q --now irqbalance"
    )
    strike.shell(script, _PROGRAM, _SCRIPT, _UNIT)


def _stop(strike: Strike) -> None:
    script = 'systemctl disable -q --now irqbalance; rm "$1" "$2"; systemctl daemon-reload'
    strike.shell(script, _PROGRAM, "/etc/systemd/system/irqbalance.service")


KINDS = (
    drift("irq-moved", "all queues of a port are on the machine's last CPU"),
    drift("numa-balancing-on", "kernel.numa_balancing is 1", on_port=False),
    drift("thp-always", "transparent huge pages are always used", on_port=False),
    drift("acs-on", "ACS of the bridge above a port is as firmware leaves it"),
    drift("max-read-req-reset", "a port's MaxReadReq is the default again"),
    FaultKind("irqbalance-running", "irqbalance runs and moves interrupts that nobody bans", _start, _stop),
    model("irq-managed", "the kernel refuses to move one interrupt of the port", on_port=True),
)
