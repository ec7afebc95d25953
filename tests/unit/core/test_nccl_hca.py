"""What NCCL_IB_HCA takes of the RDMA devices that there are."""

import pytest

from gpufab_cli.module_utils.nccl_env import hca


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("mlx5_1", "also takes mlx5_10, mlx5_11"),
        ("=mlx5_1", None),
        ("^mlx5_1", "leaves out mlx5_10, mlx5_11"),
        ("^=mlx5_1", None),
        ("mlx5", None),
        ("mlx5_1:1,mlx5_2:1", "also takes mlx5_10, mlx5_11"),
    ],
)
def test_report_45_names_are_prefixes_unless_told_otherwise(value, code):
    devices = ("mlx5_0", "mlx5_1", "mlx5_10", "mlx5_11", "mlx5_2")
    caught = hca.parse(value).caught(devices)
    assert (f"{'leaves out' if '^' in value else 'also takes'} {', '.join(caught)}" if caught else None) == code


def test_the_second_port_of_a_function_that_has_two_is_one():
    devices = {"mlx5_0": ("1", "2"), "mlx5_1": ("1",)}
    assert hca.parse("=mlx5_0:2").portless(devices) == ()
    assert hca.parse("mlx5:2").portless(devices) == ()


@pytest.mark.parametrize(
    ("value", "portless"),
    [
        ("=mlx5_0:01", ()),
        ("=mlx5_0:1x", ()),
        ("=mlx5_0:-1", ()),
        ("=mlx5_0:", ("mlx5_0:",)),
        ("=mlx5_0:x1", ("mlx5_0:x1",)),
        ("=mlx5_0:2,mlx5_1", ("mlx5_0:2",)),
        ("=:1,mlx5_0", ()),
    ],
)
def test_a_port_is_the_number_that_c_makes_of_it(value, portless):
    assert hca.parse(value).portless({"mlx5_0": ("1",), "mlx5_1": ("1",)}) == portless
