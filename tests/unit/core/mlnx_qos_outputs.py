"""What releases of mlnx_qos print, composed from the program's grammar."""

NUMBERS = (0, 1, 2, 3, 4, 5, 6, 7)
DEFAULT_MAP = tuple((dscp, dscp >> 3) for dscp in range(64))
LLDPAD = "****** WARNING: lldpad service is running and may overwrite your settings ******\n\n"
NO_BUFFERS = "Buffers commands are not supported on your system\n"
NO_RATES = "Rate limit is not supported on your system!\n"
VLAN = (
    "Priority trust state is not supported on your system\n"
    "Buffers commands are not supported on your system\n"
    "Rate limit is not supported on your system!\n"
    "ETS features are not supported on your system\n"
)


def row(name, values):
    return f"\t{name:<12}" + "".join(f"{value:<4d}" for value in values) + "\n"


def dscp_lines(pairs, descending=True):
    """At most eight DSCPs a line, each with a comma behind it."""
    lines = ""
    for priority in NUMBERS:
        own = sorted((dscp for dscp, prio in pairs if prio == priority), reverse=descending)
        for start in range(0, len(own), 8):
            listed = "".join(f"{dscp:02d}," for dscp in own[start : start + 8])
            lines += f"\tprio:{priority} dscp:{listed}\n"
    return lines


def class_lines(prio_tc, tsa, shares, *, numbered=True, order=NUMBERS, rate="unlimited"):
    lines = ""
    for tc in order:
        share = f", bw: {shares[tc]}%" if tsa[tc] == "ets" else ""
        lines += (f"tc: {tc} ratelimit: {rate}, tsa: " if numbered else "") + f"{tsa[tc]}{share}\n"
        lines += "".join(f"\t priority:  {priority}\n" for priority in NUMBERS if prio_tc[priority] == tc)
    return lines


def port(
    *,
    dcbx="OS",
    trust="dscp",
    dscps=None,
    buffers="262016,0,0,0,0,0,0,0,max_buffer_size=1027728",
    cable=7,
    pfc=(0, 0, 0, 1, 0, 0, 0, 0),
    prio_buffer=(0, 0, 0, 1, 0, 0, 0, 0),
    classes=None,
    before="",
    after_map="",
):
    """One release's output; a part that is None is left out."""
    text = before
    text += f"DCBX mode: {dcbx} controlled\n" if dcbx else ""
    text += f"Priority trust state: {trust}\n"
    if trust == "dscp":
        text += "dscp2prio mapping:\n" + (dscps if dscps is not None else dscp_lines(DEFAULT_MAP))
    text += after_map
    text += f"Receive buffer size (bytes): {buffers}\n" if buffers else ""
    text += f"Cable len: {cable}\nPFC configuration:\n" + row("priority", NUMBERS) + row("enabled", pfc)
    text += row("buffer", prio_buffer) if prio_buffer else ""
    vendor = class_lines((1, 0, 2, 3, 4, 5, 6, 7), ("vendor",) * 8, (0,) * 8)
    return text + (vendor if classes is None else classes)
