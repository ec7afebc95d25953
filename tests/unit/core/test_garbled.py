"""Outputs that are coloured, cut, endless or nested without end: the value of the whole, or Unknown."""

import pytest

from gpufab_cli.module_utils import counters, idle, management, vfs
from gpufab_cli.module_utils.bind.binding import BindError, _visible
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.devices import PCI_DEVICES
from gpufab_cli.module_utils.devices import gather as gather_devices
from gpufab_cli.module_utils.dvfs import cpu, services, smi
from gpufab_cli.module_utils.firmware import backend as firmware
from gpufab_cli.module_utils.host import Output
from gpufab_cli.module_utils.roce import dcb, gids, mlnx_qos
from gpufab_cli.module_utils.roce.gather import _pause
from gpufab_cli.module_utils.sriov import vfinfo
from gpufab_cli.module_utils.sriov.gather import read_eswitch
from gpufab_cli.module_utils.texts import natural, parse_json, plain, whole_lines
from tests.fakes import FakeHost, ok

from .dvfs_node import GPU0, GPU1
from .mlnx_qos_outputs import port
from .test_dvfs_smi import H100, QUERY, REASONS

PCI = "0000:18:00.0"
NET = f"{PCI_DEVICES}/{PCI}/net/ens1"
DEEP = "[" * 100_000
LONG = "9" * 5000
SUPERSCRIPT = "²"
"""A digit to str.isdigit, and no number to int."""
ADDR, ROUTE = ("ip", "-j", "addr", "show"), ("ip", "-j", "-4", "route", "show", "default")


def test_colours_are_no_part_of_a_text():
    assert plain(b"\x1b[1;31mETH(2)\x1b[0m\x1b[K\n") == "ETH(2)\n"
    assert plain(b"caf\xe9") == "caf\ufffd"


@pytest.mark.parametrize(("text", "lines"), [("a\nb", "a\n"), ("a\nb\n", "a\nb\n"), ("a", ""), ("", "")])
def test_half_a_line_does_not_count(text, lines):
    assert whole_lines(text) == Output(0, text, "").whole == lines


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("400000", 400000), ("9" * 19, 10**19 - 1), *((t, None) for t in ("", "-1", "1 ", SUPERSCRIPT, LONG))],
)
def test_natural_numbers(text, number):
    assert natural(text) == number


def test_json_nested_without_end_is_no_json():
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(DEEP)


@pytest.mark.parametrize("text", ["", DEEP, LONG, "null", "[[]]", '[{"dev": 7}]', '[{"nexthops": [null]}]'])
def test_json_of_no_known_release_is_unknown_everywhere(text):
    output = Output(0, text, "")
    host = FakeHost(
        answers={
            ADDR: output,
            ROUTE: output,
            ("dcb", "-j", "app", "show", "dev", "ens1"): output,
            ("ip", "-d", "-j", "link", "show", "dev", "ens1"): output,
            ("devlink", "-j", "dev", "eswitch", "show", f"pci/{PCI}"): output,
            ("devlink", "-j", "dev", "info"): output,
        },
        files={f"{NET}/x": ""},
    )
    assert isinstance(management.addresses(host), Unknown)
    assert isinstance(management.carried(host, {}), Unknown)
    assert isinstance(dcb.read(host, {"ens1": False})["ens1"].dscp, Unknown)
    assert isinstance(read_eswitch(host, PCI), Unknown)
    assert isinstance(gather_devices(host).nics[0].serial, Unknown)
    if text not in ('[{"dev": 7}]', '[{"nexthops": [null]}]'):  # names that mean nothing in this one
        assert isinstance(vfinfo.read(host, "ens1"), Unknown)


@pytest.mark.parametrize("rows", [[{"addr_info": []}], [{"ifname": "ens1", "addr_info": [{"local": 7}]}]])
def test_an_interface_without_a_name_or_with_a_strange_address_makes_all_unknown(rows):
    assert isinstance(management.addresses(FakeHost(answers={ADDR: ok(rows)})), Unknown)


@pytest.mark.parametrize("digits", [SUPERSCRIPT, LONG])
def test_what_only_looks_like_a_number_ends_nothing(digits):
    folder = "/sys/class/infiniband/mlx5_0/ports/1"
    files = {f"{NET}/x": "", f"{PCI_DEVICES}/{PCI}/sriov_numvfs": digits, f"{folder}/gids/{digits}": "fe80::1"}
    files |= {f"/sys/class/net/ens1/{name}": digits for name in ("speed", "mtu", "carrier_down_count")}
    files["/proc/net/tcp"] = f"header\n 0: {digits}:0016 0A00000A:{digits} 01 0 0 0 0 0 7\n"
    statistics = Output(0, f"NIC statistics:\n     rx_discards_phy: {digits}\n     tx_discards_phy: 3\n", "")
    host = FakeHost(files, answers={("ethtool", "-S", "ens1"): statistics, ROUTE: ok([])})
    netdev = gather_devices(host).nics[0].netdevs[0]
    assert (isinstance(netdev.speed_mbps, Unknown), netdev.mtu) == (True, 0)
    assert isinstance(vfs.read_count(host, PCI), Unknown)
    assert counters.read(host, PCI) == {"tx_discards_phy": 3}
    assert gids.read(host, "mlx5_0") == ()
    assert isinstance(management.connections(host), Unknown)
    text = port().replace("Cable len: 7", f"Cable len: {digits}").replace("262016,", f"{digits},")
    found = mlnx_qos.read(FakeHost(answers={("mlnx_qos", "-a", "-i", "ens1"): ok(text)}), {"ens1": True})["ens1"]
    assert isinstance(found.cable_m, Unknown)
    assert isinstance(found.buffer_bytes, Unknown)
    assert found.pfc == (3,)


def test_a_number_at_the_end_of_half_a_line_is_not_that_number():
    pause = "Pause parameters for ens1:\nAutonegotiate:\toff\nRX:\t\toff\nTX:\t\to"
    assert isinstance(_pause(FakeHost(answers={("ethtool", "-a", "ens1"): Output(0, pause, "")}), "ens1"), Unknown)
    statistics = Output(0, "NIC statistics:\n     tx_discards_phy: 12", "")
    host = FakeHost({f"{NET}/x": ""}, answers={("ethtool", "-S", "ens1"): statistics})
    assert counters.read(host, PCI) == {}
    text = port()
    text = text[: text.index("Cable len: 7") + len("Cable len: 7")]
    host = FakeHost(answers={("mlnx_qos", "-a", "-i", "ens1"): Output(0, text, "")})
    assert isinstance(mlnx_qos.read(host, {"ens1": True})["ens1"].cable_m, Unknown)
    table = "Configurations:   Default   Current   Next Boot\n  NUM_OF_VFS   0   0   16\n  SRIOV_EN   1   1   1"
    argv = ("mlxconfig", "-d", PCI, "-e", "q")
    host = FakeHost({"/usr/bin/mlxconfig": ""}, answers={argv: Output(0, table[:-2], "")})
    assert [str(getattr(p, "next_boot", p)) for p in firmware.read(host, PCI, ("NUM_OF_VFS", "SRIOV_EN")).values()] == [
        "16",
        "ABSENT",
    ]


def test_a_gpu_that_the_list_of_clock_event_reasons_leaves_out_is_unknown_and_not_without_any():
    answers = {QUERY: ok(H100 + H100.replace("1B", "43")), REASONS: ok("00000000:1B:00.0, 0x0000000000000004\n")}
    found, _ = smi.read(FakeHost(answers=answers), (GPU0, GPU1), clocks=False)
    untold = Unknown("nvidia-smi: no clock event reasons of this GPU")
    assert (found[GPU0].throttle, found[GPU1].throttle) == (4, untold)
    answers[REASONS] = Output(0, "00000000:1B:00.0, 0x0000000000000004\n00000000:43:00.0, 0x000000000", "")
    found, _ = smi.read(FakeHost(answers=answers), (GPU0, GPU1), clocks=False)
    assert (found[GPU0].throttle, found[GPU1].throttle) == (untold, untold)


def test_a_list_of_gpus_that_is_cut_is_unknown_and_loses_none():
    found, lost = smi.read(FakeHost(answers={QUERY: Output(0, H100 + H100[:40], "")}), (GPU0, GPU1), clocks=False)
    assert isinstance(found, Unknown)
    assert lost == {}
    cut = Output(0, H100 + H100.rstrip("\n")[:-1], "")  # as many cells, the last one of them half
    assert isinstance(smi.read(FakeHost(answers={QUERY: cut}), (GPU0,), clocks=False)[0], Unknown)


@pytest.mark.parametrize("line", ["1234, pyth", "12", "no such thing\n"])
def test_compute_processes_cut_short_are_never_an_idle_node(line):
    argv = ("nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader")
    found = idle._compute(FakeHost(answers={argv: Output(0, line, "")}))
    assert found != ()


def unit(name, active="inactive"):
    return f"Id={name}\nLoadState=loaded\nActiveState={active}\nUnitFileState=enabled\n"


@pytest.mark.parametrize("kept", [1, 4, 5])
def test_services_that_systemd_does_not_tell_all_of_are_unknown(kept):
    argv = ("systemctl", "show", "--property=Id,LoadState,ActiveState,UnitFileState,Job", *services.UNITS)
    text = "\n".join(unit(name, "active") for name in services.UNITS[:kept])
    found = services.read(FakeHost({f"{services.SYSTEMD}/x": ""}, answers={argv: Output(0, text, "")}))
    if kept == len(services.UNITS):
        assert found[services.TUNED].active == "active"
        text = text.replace("ActiveState=active\nUnitFileState=enabled\n\nId=cpu", "ActiveState=active\n\nId=cpu")
        found = services.read(FakeHost({f"{services.SYSTEMD}/x": ""}, answers={argv: Output(0, text, "")}))
    assert isinstance(found, Unknown)


def test_a_latency_that_is_no_number_is_unknown_and_a_gpu_s_number_that_is_none_is_no_gpu():
    base = f"{cpu.CPU}/cpu0/cpuidle/state1"
    for latency in (SUPERSCRIPT, LONG, "", "x"):
        host = FakeHost({f"{base}/name": "C6\n", f"{base}/latency": latency, f"{base}/disable": "0\n"})
        states, latencies = cpu._states(host, (0,))
        assert (isinstance(states, Unknown), latencies) == (True, ())
    for visible in (SUPERSCRIPT, LONG, "0,²"):
        with pytest.raises(BindError, match="GPU"):
            _visible((), visible)
