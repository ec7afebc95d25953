"""ECN, traffic class and RDMA-CM defaults as sysfs and configfs show them."""

import pytest

from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.roce import sysfs, vendor_ecn
from gpufab_cli.module_utils.roce.backend import Port
from tests.fakes import FakeHost

TC = "/sys/class/infiniband/mlx5_0/tc/1/traffic_class"
CM = "/sys/kernel/config/rdma_cm"


@pytest.mark.parametrize(
    ("text", "value", "rules"),
    [
        ("", ABSENT, ()),
        ("Global tclass=160\n", 160, ()),
        ("Global tclass=0\n", 0, ()),
        (
            "Global tclass=106\nsrc_ip=10.0.0.1/24,tclass=32\ndst_ip=10.0.0.9/24,tclass=33\n",
            106,
            ("src_ip=10.0.0.1/24,tclass=32", "dst_ip=10.0.0.9/24,tclass=33"),
        ),
        ("src_ip=10.0.0.1/24,tclass=32\n", ABSENT, ("src_ip=10.0.0.1/24,tclass=32",)),
    ],
)
def test_traffic_class(text, value, rules):
    assert sysfs.read_traffic_class(FakeHost({TC: text}), "mlx5_0") == (value, rules)


@pytest.mark.parametrize("text", ["106", "Global tclass=x", "tclass=1\nGlobal tclass=2"])
def test_a_strange_traffic_class_is_unknown(text):
    assert isinstance(sysfs.read_traffic_class(FakeHost({TC: text}), "mlx5_0")[0], Unknown)


def test_without_the_vendor_driver_ecn_is_unknown_and_not_off():
    assert vendor_ecn.read_enabled(FakeHost(), "ens1", "roce_np") == Unknown(vendor_ecn.NO_ECN)
    found = vendor_ecn.read(FakeHost(), Port("0000:18:00.0", "ens1", None), ("rpg_ai_rate",))
    assert found.cnp_dscp == found.dcqcn["rpg_ai_rate"] == Unknown(vendor_ecn.NO_ECN)
    assert sysfs.read_traffic_class(FakeHost(), "mlx5_0")[0] == Unknown(sysfs.NO_TC)


def test_enabled_priorities():
    files = {vendor_ecn.ecn_path("ens1", "roce_rp", f"enable/{p}"): "1\n" if p in (3, 5) else "0\n" for p in range(8)}
    assert vendor_ecn.read_enabled(FakeHost(files), "ens1", "roce_rp") == (3, 5)
    files[vendor_ecn.ecn_path("ens1", "roce_rp", "enable/0")] = "on\n"
    assert isinstance(vendor_ecn.read_enabled(FakeHost(files), "ens1", "roce_rp"), Unknown)


def test_rdma_cm_keeps_absent_unknown_and_zero_apart():
    assert sysfs.read_rdma_cm_tos(FakeHost(), "mlx5_0") == Unknown(sysfs.NO_RDMA_CM)
    loaded = FakeHost({f"{CM}/other/ports/1/default_roce_tos": "0\n"})
    assert sysfs.read_rdma_cm_tos(loaded, "mlx5_0") is ABSENT
    zero = FakeHost({f"{CM}/mlx5_0/ports/1/default_roce_tos": "0\n"})
    assert sysfs.read_rdma_cm_tos(zero, "mlx5_0") == 0
    denied = FakeHost({f"{CM}/mlx5_0/ports/1/default_roce_tos": "0\n"})
    denied.unreadable[f"{CM}/mlx5_0/ports/1/default_roce_tos"] = "Permission denied"
    assert isinstance(sysfs.read_rdma_cm_tos(denied, "mlx5_0"), Unknown)


def test_a_port_without_an_rdma_device_is_unknown():
    assert isinstance(sysfs.read_rdma_cm_tos(FakeHost(), None), Unknown)
    assert isinstance(sysfs.read_traffic_class(FakeHost(), None)[0], Unknown)
