"""What keeps irqbalance from moving the interrupts of the ports: a policy that it asks about every interrupt.

Numbers given with ``--banirq`` would not do: an interrupt has another one after each boot and each load of its driver.
irqbalance(1): ``--policyscript`` is called with the device's directory and the number, and answers ``ban=true``. The
unit takes its arguments from environment files, of which the last one holds.
"""

import re
from typing import Dict, Iterable, Tuple

from ..change import ABSENT, Step, Unknown
from ..daemons import named
from ..host import Host, HostError, Reader
from .seen import IrqbalanceSeen, Text

PROGRAM = "irqbalance"
UNIT = "irqbalance.service"
SYSTEMD = "/run/systemd/system"
POLICY = "/etc/gpufab/irqbalance-policy"
ENVIRONMENT = "/etc/gpufab/irqbalance.env"
DROP_IN = "/etc/systemd/system/irqbalance.service.d/90-gpufab.conf"
FILES = (POLICY, ENVIRONMENT, DROP_IN)
PROCESS = (PROGRAM, "policy")
"""Path of the change that the process which runs has the policy."""
START_SECONDS = 5
SITE = ("/etc/default/irqbalance", "/etc/sysconfig/irqbalance")
"""Where Debian and the RHEL family keep the arguments."""
OPTION = "--policyscript"
_OTHER_POLICY = re.compile(r"(?:^|\s)(?:--policyscript|-l)(?:[=\s]|$)")


def arguments(host: Reader) -> Text:
    """What the site starts irqbalance with; "" where it says nothing."""
    for path in SITE:
        text = host.read(path)
        if isinstance(text, Unknown):
            return text
        lines = text.splitlines() if isinstance(text, str) else []
        found = [match[1] for line in lines if (match := re.match(r"\s*(?:IRQBALANCE_ARGS|OPTIONS)=(.*)$", line))]
        if found:
            quoted = re.match(r"""(["'])(.*?)\1""", found[-1].strip())
            return quoted[2] if quoted else found[-1].strip()
    return ""


def has_own_policy(site: str) -> bool:
    """Whether the site gives irqbalance a policy of its own."""
    return _OTHER_POLICY.search(site) is not None


def contents(site: str, ports: Iterable[str]) -> Dict[str, str]:
    """The text of each of gpufab's files by path, without its last newline; ``site`` are the site's own arguments."""
    line = f"{site} {OPTION}={POLICY}".strip().replace("\\", "\\\\").replace('"', '\\"')
    return {
        POLICY: _policy(ports),
        ENVIRONMENT: f'# Kept by gpufab.\nIRQBALANCE_ARGS="{line}"\nOPTIONS="{line}"',
        DROP_IN: f"# Kept by gpufab.\n[Service]\nEnvironmentFile={ENVIRONMENT}",
    }


def _policy(ports: Iterable[str]) -> str:
    lines = (
        "#!/bin/sh",
        "# Kept by gpufab: it sets the interrupts of these ports itself.",
        'case "${1##*/}" in',
        f"{'|'.join(sorted(ports))}) echo ban=true ;;",
        "esac",
    )
    return "\n".join(lines)


def read(host: Reader) -> IrqbalanceSeen:
    """irqbalance as it is; nothing of it where it is not installed."""
    lines = _command_lines(host)
    if not host.installed(PROGRAM) and not lines:
        return IrqbalanceSeen()
    return IrqbalanceSeen(
        running=bool(lines),
        told=all(isinstance(line, str) and f"{OPTION}={POLICY}" in line.split("\0") for line in lines),
        arguments=arguments(host),
        files={path: host.read(path) for path in FILES},
    )


def _command_lines(host: Reader) -> Tuple[Text, ...]:
    """What the processes of that name were started with. One that begins or ends has the name and no line
    (fs/proc/base.c, get_mm_cmdline), and one that was forked to ask the policy is a shell a moment later: these tell
    nothing.
    """
    pids = [process.pid for process in named(host, (PROGRAM,))]
    found = [(host.read(f"/proc/{pid}/cmdline"), host.read(f"/proc/{pid}/comm")) for pid in pids]
    return tuple(line for line, name in found if name == PROGRAM and line is not ABSENT and line != "")


def apply(host: Host, step: Step) -> None:
    """Write or remove the files, then have irqbalance start anew where it runs."""
    for change in step.changes:
        path = change.path[0]
        if path in FILES and change.desired is ABSENT:
            host.remove(path)
        elif path in FILES:
            host.put(path, f"{change.desired}\n".encode(), 0o755 if path == POLICY else 0o644)
    if not host.exists(SYSTEMD):
        return
    host.run("systemctl", "daemon-reload")
    if any(change.path == PROCESS for change in step.changes):
        _start_anew(host)


def _start_anew(host: Host) -> None:
    """Restart what runs; where it is gone, as it did not bear its new arguments and these are undone, start it.

    systemd is content once the process is forked (systemd.service(5), Type=simple): whether it took its arguments shows
    a moment later.

    Raises:
        HostError: systemd refuses, or irqbalance does not stay.
    """
    host.run("systemctl", "try-restart" if _command_lines(host) else "restart", UNIT)
    for _ in range(START_SECONDS * 5):
        host.sleep(0.2)
        if _command_lines(host):
            break
    host.sleep(0.2)
    if not _command_lines(host):
        raise HostError(f"{UNIT} was started anew and does not run: see journalctl -u {UNIT}")
