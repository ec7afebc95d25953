"""Parsers over garbled output give a right value or unknown; what a backend writes is what it reads back."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.host import Output
from gpufab_cli.module_utils.roce import bnxt, cc_params, dcb, headroom, mlnx_qos, mlnx_qos_text, vendor_ecn
from gpufab_cli.module_utils.roce.backend import Ets, Port
from gpufab_cli.module_utils.roce.knobs import DcqcnWant, debugfs_file, vendor_file
from gpufab_cli.module_utils.schema import decode
from tests.fakes import FakeHost, ok
from tests.property.octets import octets
from tests.unit.core.mlnx_qos_outputs import NUMBERS, class_lines, dscp_lines, port

PORT = Port("0000:18:00.0", "ens1", "mlx5_0")
KNOBS = tuple(DcqcnWant.__dataclass_fields__)
priority = st.integers(0, 7)
dscp = st.integers(0, 63)
eight = octets(8, lambda drawn: drawn % 8)
flags = octets(8, lambda drawn: drawn % 2)
kinds = octets(8, lambda drawn: ("ets", "strict", "vendor")[drawn % 3])
percent = octets(8, lambda drawn: drawn % 101)


@st.composite
def shares(draw):
    tsa = draw(kinds)
    return tsa, tuple(share if word == "ets" else 0 for word, share in zip(tsa, draw(percent), strict=True))


@st.composite
def mlnx_outputs(draw):
    """A port's output, with what it says beside it."""
    table = tuple(enumerate(draw(octets(64, lambda drawn: drawn % 8))))
    pfc, (tsa, bandwidth), prio_tc = draw(flags), draw(shares()), draw(eight)
    dcbx = draw(st.sampled_from([None, "OS", "Firmware"]))
    text = port(dcbx=dcbx, dscps=dscp_lines(table), pfc=pfc, classes=class_lines(prio_tc, tsa, bandwidth))
    on = tuple(priority for priority in NUMBERS if pfc[priority])
    return text, {"dscp": table, "pfc": on, "prio_tc": prio_tc, "tc_tsa": tsa, "tc_bw": bandwidth}


@given(mlnx_outputs())
def test_mlnx_qos_reads_whatever_state_a_port_is_in(output):
    text, state = output
    found = mlnx_qos_text.parse(text, "", "ens1")
    assert {name: getattr(found, name) for name in state} == state


noise = st.sampled_from(["\x00", "\x1b[31m", "\n", "\t", "é", "�", ",", "9", "Traceback (most recent call last):\n"])


@st.composite
def garbled(draw, texts):
    """Cut, doubled, with lines swapped or noise in between."""
    text = draw(texts)
    for _ in range(draw(st.integers(1, 3))):
        first, last = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
        how = draw(st.sampled_from(["cut", "keep", "double", "noise", "swap"]))
        if how == "cut":
            text = text[:first] + text[last:]
        elif how == "keep":
            text = text[first:last]
        elif how == "double":
            text = text[:last] + text[first:]
        elif how == "noise":
            text = text[:first] + draw(noise) * draw(st.integers(1, 3)) + text[first:]
        else:
            lines = text.splitlines(keepends=True)
            text = "".join(draw(st.permutations(lines)))
    return text


def in_range(found):
    """Whatever is known is a value that a port can have."""
    limits = {"pfc": 7, "prio_tc": 7, "tc_bw": 100, "prio_buffer": 7}
    for name, high in limits.items():
        value = getattr(found, name)
        assert isinstance(value, Unknown) or all(0 <= item <= high for item in value)
    for name in ("prio_tc", "tc_tsa", "tc_bw", "prio_buffer", "buffer_bytes"):
        value = getattr(found, name)
        assert isinstance(value, Unknown) or len(value) == 8
    assert isinstance(found.dscp, Unknown) or all(0 <= d <= 63 and 0 <= p <= 7 for d, p in found.dscp)


@settings(max_examples=400)
@given(garbled(mlnx_outputs().map(lambda output: output[0])), st.integers(0, 2))
def test_garbled_mlnx_qos_is_a_value_or_unknown(text, rc):
    in_range(
        mlnx_qos.read(FakeHost(answers={("mlnx_qos", "-a", "-i", "ens1"): Output(rc, text, "")}), {"ens1": True})[
            "ens1"
        ]
    )


JSON = {
    "pfc": '{"pfc_cap":8,"macsec_bypass":false,"delay":7,"prio_pfc":[false,false,false,true,false,false,false,false]}',
    "app": '{"dscp_prio":[[26,3," "],[48,6," "]]}',
    "ets": '{"willing":false,"tc_bw":[50,0,0,50,0,0,0,0],"tc_tsa":["ets","ets","ets","ets","ets","ets","strict","ets"],'
    '"prio_tc":[0,1,2,3,4,5,6,7]}',
    "buffer": '{"prio_buffer":[0,0,0,1,0,0,0,0],"buffer_size":[10,20,0,0,0,0,0,0],"total_size":99}',
    "dcbx": '{"host":true,"ieee":true}',
}


@settings(max_examples=400)
@given(st.fixed_dictionaries({what: garbled(st.just(text)) for what, text in JSON.items()}))
def test_garbled_dcb_is_a_value_or_unknown(texts):
    answers = {("dcb", "-j", what, "show", "dev", "ens1"): ok(text) for what, text in texts.items()}
    in_range(dcb.read(FakeHost(answers=answers), {"ens1": True})["ens1"])


@given(st.text() | st.integers().map(str) | st.integers().map(hex))
def test_any_cell_of_a_mask_is_priorities_or_unknown(cell):
    mask = cc_params.parse_mask(cell)
    assert isinstance(mask, Unknown) or set(mask) <= set(NUMBERS)


def vendor_host():
    files = {
        vendor_ecn.ecn_path("ens1", side, f"enable/{p}"): "0\n" for side in vendor_ecn.SIDES.values() for p in NUMBERS
    }
    files |= {vendor_ecn.ecn_path("ens1", *vendor_file(knob)): "1\n" for knob in KNOBS}
    return FakeHost(
        {**files, **{vendor_ecn.ecn_path("ens1", "roce_np", n): "0\n" for n in ("cnp_dscp", "cnp_802p_prio")}}
    )


def inbox_host():
    files = {cc_params.path(PORT.pci, debugfs_file(knob)): "1\n" for knob in KNOBS}
    names = ("np_cnp_dscp", "np_cnp_prio", "np_cnp_prio_mode")
    return FakeHost({**files, **{cc_params.path(PORT.pci, name): "0\n" for name in names}})


def broadcom_host():
    names = ("ecn_enable", "ecn_marking", "roce_prio", "roce_dscp", "cnp_dscp", "cnp_prio", "cc_mode", "apply")
    return FakeHost({bnxt.path("mlx5_0", name): "0\n" for name in names})


cnp = st.fixed_dictionaries({}, optional={"cnp_dscp": dscp, "cnp_priority": priority})


@given(st.sampled_from([(vendor_ecn, vendor_host), (cc_params, inbox_host), (bnxt, broadcom_host)]), cnp)
def test_cnp_marking_reads_as_it_was_written(driver, values):
    backend, host = driver[0], driver[1]()
    backend.set_cnp(host, PORT, values)
    found = backend.read(host, PORT, ())
    assert {name: getattr(found, name) for name in values} == values


@given(st.sampled_from([(vendor_ecn, vendor_host), (cc_params, inbox_host)]), st.data())
def test_parameters_read_as_they_were_written(driver, data):
    backend, host = driver[0], driver[1]()
    values = data.draw(st.dictionaries(st.sampled_from(KNOBS), st.integers(0, 11)))
    backend.set_dcqcn(host, PORT, values)
    found = backend.read(host, PORT, KNOBS).dcqcn
    assert found == {**dict.fromkeys(KNOBS, 1), **values}


priorities = st.sets(priority).map(sorted).map(tuple)


@given(st.lists(st.tuples(priorities, priorities), min_size=1, max_size=3))
def test_the_vendors_ecn_reads_as_it_was_written(turns):
    host = vendor_host()
    for np, rp in turns:
        now = vendor_ecn.read(host, PORT, ())
        vendor_ecn.set_ecn(host, PORT, {"ecn_np": (now.ecn_np, np), "ecn_rp": (now.ecn_rp, rp)})
        after = vendor_ecn.read(host, PORT, ())
        assert (after.ecn_np, after.ecn_rp) == (np, rp)


@given(st.none() | priority, dscp)
def test_broadcoms_ecn_and_class_read_as_they_were_written(on, code):
    host, wanted = broadcom_host(), () if on is None else (on,)
    bnxt.set_ecn(host, PORT, {"ecn_rp": ((), wanted)})
    bnxt.set_traffic_class(host, PORT, code << 2)
    assert bnxt.read(host, PORT, ()).ecn_rp == wanted
    assert bnxt.read_traffic_class(host, PORT) >> 2 == code


@given(st.integers(1, 998), st.integers(1, 1600), st.integers(576, 9977))
def test_headroom_grows_with_cable_speed_and_frame(cable, speed, mtu):
    least = headroom.xoff(cable, speed, mtu)
    longer, faster, larger = (
        headroom.xoff(cable + 1, speed, mtu),
        headroom.xoff(cable, speed + 1, mtu),
        headroom.xoff(cable, speed, mtu + 1),
    )
    assert least < longer
    assert least <= faster
    assert least < larger


@given(st.data())
def test_every_parameter_takes_what_its_range_says(data):
    name = data.draw(st.sampled_from(KNOBS))
    assert decode(DcqcnWant, {name: 10 if name == "rpg_gd" else 1}).wanted() == {name: 10 if name == "rpg_gd" else 1}


def test_ets_is_one_request():
    fake = FakeHost()
    fake._answer = lambda argv: ok("")
    dcb.set_ets(fake, "ens1", Ets(NUMBERS, ("ets",) * 8, (50, 50, 0, 0, 0, 0, 0, 0)))
    assert len(fake.writes) == 1
