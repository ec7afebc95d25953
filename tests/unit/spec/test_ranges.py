import tracemalloc

import pytest

from gpufab_cli.spec import ranges
from gpufab_cli.spec.ranges import MAX_HOSTS, expand, numbers
from tests import fabrics


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu7", ["gpu7"]),
        ("gpu[008-011]", ["gpu008", "gpu009", "gpu010", "gpu011"]),
        ("gpu[8-11]", ["gpu8", "gpu9", "gpu10", "gpu11"]),
        ("gpu[01-03,07]", ["gpu01", "gpu02", "gpu03", "gpu07"]),
        ("r[1-2]n[1-2].pod", ["r1n1.pod", "r1n2.pod", "r2n1.pod", "r2n2.pod"]),
        ("10.0.0.[11-12]", ["10.0.0.11", "10.0.0.12"]),
        ("gpu[99-101]", ["gpu99", "gpu100", "gpu101"]),
        ("gpu[5-5]", ["gpu5"]),
    ],
)
def test_ranges_expand_in_order_with_their_zeros(text, expected):
    assert list(expand(text)) == expected


@pytest.mark.parametrize(
    "text",
    ["gpu[", "gpu]", "gpu[1-2", "gpu[]", "gpu[3-1]", "gpu[a-c]", "gpu[1-2-3]", "gpu[[1-2]]", "gpu[-1]", "x[1:3]"],
)
def test_what_is_no_range_is_refused(text):
    with pytest.raises(ValueError, match=r"bracket|range"):
        expand(text)


@pytest.mark.parametrize("text", [f"gpu[0-{MAX_HOSTS}]", "gpu[0-999999999]", "a[0-999]b[0-999]"])
def test_a_slip_does_not_fill_the_memory(text):
    with pytest.raises(ValueError, match=r"longer|more than"):
        expand(text)


def test_rails_are_numbers():
    assert numbers("0-3,6") == (0, 1, 2, 3, 6)


@pytest.mark.parametrize("read", [expand, numbers])
def test_spans_of_one_bracket_are_counted_before_they_are_written_out(read):
    spans = ",".join([f"0-{MAX_HOSTS - 1}"] * 200)
    text = f"gpu[{spans}]" if read is expand else spans
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than"):
            read(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


def test_hosts_are_counted_over_all_entries_before_they_are_written_out(monkeypatch):
    entries = ", ".join(f'{{name: "g{number}x[00001-90000]", profile: box}}' for number in range(2000))
    written = []
    monkeypatch.setattr(ranges, "expand", lambda text: written.append(text) or ())
    told = fabrics.refusals(('  - {name: "gpu[01-03]", profile: box, address: "10.0.0.[11-13]"}', f"  [{entries}]"))
    assert told == ["hosts: 180000000 hosts in all, more than 100000"]
    assert written == []
