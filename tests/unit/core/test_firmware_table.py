"""What mlxconfig prints, in every width it has had, and what counts as the same value."""

import pytest

from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.firmware.seen import Parameter
from gpufab_cli.module_utils.firmware.table import argument, parse, same

VALUES = {
    "NUM_OF_VFS": ("0", "0", "8"),
    "SRIOV_EN": ("False(0)", "False(0)", "True(1)"),
    "LINK_TYPE_P1": ("IB(1)", "ETH(2)", "ETH(2)"),
    "NUM_OF_TC_P1": ("_8_TCs(0)", "_8_TCs(0)", "_8_TCs(0)"),
    "ESWITCH_HAIRPIN_DESCRIPTORS": ("Array[0..7]", "Array[0..7]", "Array[0..7]"),
    "PCI_DOWNSTREAM_PORT_OWNER[1]": ("DEVICE_DEFAULT(0)", "HOST_0(1)", "148"),
}


def printed(name_width, value_width, columns=("Default", "Current", "Next Boot")):
    head = f"{'Configurations:':<{name_width + 8}}" + "".join(f"{c:<{value_width + 1}}" for c in columns)
    rows = []
    for name, values in VALUES.items():
        mark = "*" if len(set(values)) > 1 else " "
        kind = "RO" if name.startswith("NUM_OF_TC") else "  "
        cells = "".join(f"{value:<{value_width}}" + " " for value in values[-len(columns) :])
        rows.append(f"{mark}{kind}{'':5}{name:<{name_width}}{cells}")
    top = "\nDevice #1:\n----------\n\nDevice type:        ConnectX7           \n\n"
    return (
        top
        + "\n".join([head, *rows])
        + "\nThe '*' shows parameters with next value different from default/current value.\n"
    )


@pytest.mark.parametrize("widths", [(36, 16), (44, 20), (48, 33)])
def test_every_width(widths):
    assert parse(printed(*widths)) == {name: Parameter(*values) for name, values in VALUES.items()}


def test_a_release_without_current_values_leaves_them_unknown():
    found = parse(printed(48, 33, ("Next Boot",)))
    assert found["NUM_OF_VFS"].next_boot == "8"
    assert isinstance(found["NUM_OF_VFS"].current, Unknown)


@pytest.mark.parametrize("text", ["", "-E- Failed to open the device\n", "Configurations:   Default  Current\n"])
def test_what_is_no_table_is_told_apart_from_an_empty_one(text):
    assert parse(text) is None


@pytest.mark.parametrize(
    ("cell", "wish", "expected"),
    [
        ("8", "8", True),
        ("18", "8", False),
        ("128", "8", False),
        ("80", "8", False),
        ("True(1)", "True", True),
        ("True(1)", "1", True),
        ("True(1)", "true", True),
        ("False(0)", "1", False),
        ("ETH(2)", "ETH", True),
        ("ETH(2)", "IB", False),
        ("ETH(2)", "2", True),
        ("_8_TCs(0)", "8_TCs", True),
        ("0xff", "255", True),
        ("255", "0xff", True),
        ("N/A", "0", False),
        ("Array[0..7]", "0", False),
        (Unknown("no"), "8", False),
    ],
)
def test_same(cell, wish, expected):
    assert same(cell, wish) is expected


@pytest.mark.parametrize(("value", "said"), [("True(1)", "1"), ("8", "8"), ("ETH", "ETH"), ("_256KB(1)", "1")])
def test_argument(value, said):
    assert argument(value) == said
