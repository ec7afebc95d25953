"""What is compared of two machines' answers, and what is not."""

from tests.vm import parity


def test_names_and_addresses_are_of_the_machine():
    text = "2: rail0:  <UP>\n    link/ether 52:54:00:67:01:00 brd ff:ff:ff:ff:ff:ff\n\n"
    assert parity.lines(text, "rail0") == ["2: PORT: <UP>", "link/ether MAC brd MAC"]
    links = "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev rail0 \n"
    more = links + links.replace("mlx5_0", "mlx5_7").replace("rail0", "enp1s0")
    assert parity.lines(links, "rail0") == parity.lines(more, "enp64s0np0")


def test_json_is_its_shape():
    assert parity.shape([{"b": 1, "a": [True, False]}, {"b": 7, "a": [True]}]) == [{"a": ["bool"], "b": "int"}]
    assert parity.shape([]) != parity.shape([1])


def test_each_difference_is_told():
    answer = {"rc": 0, "out": ["x"], "err": []}
    assert parity.differences({"a": answer}, {"a": answer}) == []
    assert parity.differences({"a": answer}, {"a": {**answer, "rc": 2}}) == ["a rc: 2, recorded 0"]
    assert len(parity.differences({"a": answer}, {})) == 3


def test_a_command_that_is_not_there_is_an_answer():
    assert parity.answer(["no-such-program-1"], "rail0") == {"rc": 127, "out": [], "err": ["not found"]}


def test_a_file_read_byte_by_byte(tmp_path):
    (tmp_path / "file").write_text("0-3\n")
    assert parity.short_read(str(tmp_path / "file"))["out"] == ["something"]
