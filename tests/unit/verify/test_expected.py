"""What verify expects of the nodes of a fabric."""

from dataclasses import replace

from gpufab_cli.compile.fabric import load_fabric
from gpufab_cli.spec.lock import load_lock
from gpufab_cli.verify.expected import expected, nodes


def test_only_wishes_that_are_restored_lie_on_a_node(repository):
    nodes = {node.host: node for node in expected(repository / "inventory" / "infiniband-ndr" / "fabric.yml")}
    assert set(nodes["gpu001"].kept) == {"roce"}
    assert set(nodes["gpu001"].wishes) == {"node", "roce", "links"}
    assert [port.rail for port in nodes["gpu016"].ports] == ["storage/0"]


def test_a_host_without_roce_has_no_ports_to_look_at(repository):
    (node,) = expected(repository / "inventory" / "inference-100g" / "fabric.yml", "front1")
    assert (node.kept, node.ports) == ({}, ())


def test_a_want_at_another_device_does_not_bless_itself(repository):
    path = repository / "inventory" / "inference-100g" / "fabric.yml"
    declared = load_fabric(path, "inf01")
    wrong = {
        feature: replace(
            want, ports=tuple(replace(port, pci="0000:ff:00.0", mac="02:00:00:00:00:ff") for port in want.ports)
        )
        for feature, want in declared.wants["inf01"].items()
        if feature in ("roce", "links")
    }
    (node,) = nodes(replace(declared, wants={"inf01": declared.wants["inf01"] | wrong}))
    found = {port.rail: (port.pci, port.mac) for port in node.ports}
    found |= {link.rail: (link.pci, link.identity) for link in node.links}
    pinned = load_lock(path).hosts["inf01"].ports
    assert set(wrong) == {"roce", "links"}
    assert found == {rail: (port.pci, port.mac) for rail, port in pinned.items()}
