"""What read.sh prints of a node that is as declared, section by section, to change something of."""

import json

RULE = 'ACTION!="add", GOTO="end"\n'
RULE += 'TAG+="systemd", ENV{SYSTEMD_WANTS}+="gpufab-restore-device@$kernel.service"\nLABEL="end"\n'
SIZES = [130944, 200000, 0, 0, 0, 0, 0, 0]
ALL_ON = "\n".join("1" * 8)
DSCP = " ".join(f"{dscp}:{ {26: 3, 48: 6}.get(dscp, 0) }" for dscp in range(64))


def eight(values):
    return " ".join(f"{index}:{value}" for index, value in enumerate(values))


ACCESS = """\
-rw-r--r-- /usr/local/lib/gpufab/gpufab.pyz
-rwxr-xr-x /usr/local/bin/gpufab-bind
drwxr-xr-x /usr
drwxr-xr-x /usr/local/lib/gpufab
"""


def healthy(host, wish):
    """The sections of a node with the two ports of fabrics.SMALL: (code, text) by name."""
    links = "\n".join(
        f"link mlx5_{r}/1 state ACTIVE physical_state LINK_UP netdev eth{r} " for r in range(2)
    )  # fmt: skip
    sections = {
        "uid": ("0", "0"),
        "rdma": ("0", links),
        "program": ("2", "gpufab: usage: collect | restore early | ..."),
        "unit-files": ("0", "[Unit]"),
        "units": ("0", ""),
        "enabled": ("0", "enabled\nenabled"),
        "ended": ("1", "inactive\ninactive"),
        "rule": ("0", RULE),
        "rule-verified": ("0", "1 udev rules files have been checked."),
        "access": ("0", ACCESS),
        "desired/roce.json": ("0", json.dumps({"format": 1, "feature": "roce", "want": wish})),
    }
    for rail in range(2):
        sections |= {f"0000:{rail + 1}8:00.0/{name}": section for name, section in port(host, rail).items()}
    return sections


def port(host, rail):
    mac = f"02:00:00:00:{host:02x}:{rail:02x}"
    gid = f"0000:0000:0000:0000:0000:ffff:0a0a:{rail:02x}{host:02x}"  # 10.10.{rail}.{host}
    return {
        "netdevs": ("0", f"eth{rail}"),
        "bonded": ("0", "none"),
        "link": ("0", f"3: eth{rail}: <UP> mtu 9000 qdisc mq state UP mode DEFAULT\\    link/ether {mac} brd ff"),
        "pause": ("0", json.dumps([{"ifname": f"eth{rail}", "autonegotiate": False, "rx": False, "tx": False}])),
        "pfc": ("0", "pfc-cap 8 macsec-bypass off delay 7 \nprio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off "),
        "dscp": ("0", f"dscp-prio {DSCP} "),
        "ets": (
            "0",
            f"willing off ets-cap 8 \ntc-bw {eight([40, 0, 0, 60, 0, 0, 0, 0])} \nprio-tc {eight(range(8))} \n"
            f"tc-tsa {eight(['ets'] * 6 + ['strict', 'ets'])} ",
        ),
        "np": ("0", ALL_ON),
        "rp": ("0", ALL_ON),
        "cnp": ("0", "48\n6"),
        "dcqcn": ("0", "rpg_ai_rate 5\nrpg_gd 11\nmin_time_between_cnps 4"),
        "buffers": ("0", json.dumps({"prio_buffer": [0, 0, 0, 1, 0, 0, 0, 0], "buffer_size": SIZES, "total_size": 1})),
        "traffic-class": ("0", "Global tclass=106"),
        "rdma-cm": ("0", "106\nRoCE v2"),
        "gids": ("0", f"2 {gid} IB/RoCE v1\n3 {gid} RoCE v2"),
    }


def printed(sections):
    return "".join(f"\n@@gpufab {name} {code}\n{text}\n" for name, (code, text) in sections.items()) + (
        "\n@@gpufab end 0\n"
    )
