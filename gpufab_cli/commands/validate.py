"""``gpufab validate``: is fabric.yml right, and what does it say?"""

from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpufab_cli.commands.options import fabric_option, format_option

if TYPE_CHECKING:
    from gpufab_cli.spec.model import FabricSpec, Qos


@click.command()
@fabric_option
@format_option
def command(fabric: Path, output: str) -> None:
    """Check fabric.yml and its lock, and print what they say.

    Every error is printed at its line, and the exit code is then 2. No host is contacted.

    \b
    Examples:
      gpufab validate
      gpufab validate -f inventory/lab/fabric.yml --format json
    """
    from gpufab_cli.fabric.resolve import locked_hosts
    from gpufab_cli.spec.load import load

    summary = summarise(load(fabric), locked_hosts(fabric))
    if output == "json":
        from gpufab_cli.report.console import print_json

        print_json(summary)
    else:
        _print(summary)


def summarise(spec: "FabricSpec", locked: Container[str]) -> dict[str, Any]:
    """What a fabric, and which of its hosts are locked, says in short, as plain data."""
    return {
        "fabric": spec.name,
        "networks": [
            {
                "name": name,
                "transport": network.transport,
                "rails": network.rails,
                "speed_gbps": network.speed_gbps,
                "mtu": network.mtu,
                "qos": network.qos,
            }
            for name, network in spec.networks.items()
        ],
        "qos": [{"name": name, "classes": _classes(qos)} for name, qos in spec.qos.items()],
        "profiles": [
            {"name": name, "ports": len(profile.rails), "hosts": sum(host.profile == name for host in spec.hosts)}
            for name, profile in spec.profiles.items()
        ],
        "hosts": {state: len(spec.in_state(state)) for state in ("active", "maintenance", "absent")},
        "overridden": sum(bool(spec.host_entries[host.entry].override) for host in spec.hosts),
        "locked": sum(host.name in locked for host in spec.in_state("active")),
        "accepted": [
            {"code": waiver.code, "hosts": waiver.hosts, "rail": waiver.rail, "expires": str(waiver.expires)}
            for waiver in spec.accept
        ],
    }


def _classes(qos: "Qos") -> list[dict[str, Any]]:
    from gpufab_cli.intent.qos import traffic_class

    found: list[dict[str, Any]] = [
        {
            "class": "lossless",
            "priority": item.priority,
            "dscp": list(item.dscp),
            "tos": [traffic_class(dscp, ecn=qos.ecn) for dscp in item.dscp],
            "share": (qos.ets or {}).get(item.priority),
        }
        for item in qos.lossless
    ]
    if qos.cnp:
        cnp = qos.cnp
        found.append({"class": "cnp", "priority": cnp.priority, "dscp": [cnp.dscp], "tos": [cnp.dscp << 2]})
    other = qos.other_dscp.priority
    return [*found, {"class": "other", "priority": other, "dscp": [], "share": (qos.ets or {}).get(other)}]


def _print(summary: dict[str, Any]) -> None:
    from gpufab_cli.report.console import print_table, results

    print_table(
        ["network", "transport", "rails", "Gb/s", "MTU", "QoS"], [_cells(row.values()) for row in summary["networks"]]
    )
    print_table(
        ["QoS", "class", "priority", "DSCP", "ToS", "ETS %"],
        [
            _cells([qos["name"], item["class"], item["priority"], item["dscp"], item.get("tos"), item.get("share")])
            for qos in summary["qos"]
            for item in qos["classes"]
        ],
    )
    print_table(["profile", "ports", "hosts"], [_cells(row.values()) for row in summary["profiles"]])
    hosts = summary["hosts"]
    if summary["accepted"]:
        print_table(["accepted", "hosts", "rail", "until"], [_cells(row.values()) for row in summary["accepted"]])
    told = ", ".join(f"{count} {state}" for state, count in hosts.items() if count)
    told += f"; {summary['overridden']} with overrides" if summary["overridden"] else ""
    results().print(f"{summary['fabric']}: {told}; {summary['locked']} of {hosts['active']} active hosts locked")


def _cells(values: Any) -> list[str]:
    return ["-" if value in (None, []) else _text(value) for value in values]


def _text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
