"""What verify expects of the nodes of a fabric."""

from gpufab_cli.verify.expected import expected


def test_only_wishes_that_are_restored_lie_on_a_node(repository):
    nodes = {node.host: node for node in expected(repository / "inventory" / "infiniband-ndr" / "fabric.yml")}
    assert set(nodes["gpu001"].kept) == {"roce"}
    assert set(nodes["gpu001"].wishes) == {"node", "roce", "links"}
    assert [port.rail for port in nodes["gpu016"].ports] == ["storage/0"]


def test_a_host_without_roce_has_no_ports_to_look_at(repository):
    (node,) = expected(repository / "inventory" / "inference-100g" / "fabric.yml", "front1")
    assert (node.kept, node.ports) == ({}, ())
