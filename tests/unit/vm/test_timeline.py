"""The seconds of a boot, from entries as journalctl -o json writes them."""

from tests.vm import timeline


def _kernel(second, message):
    return {"__MONOTONIC_TIMESTAMP": str(int(second * 1e6)), "_TRANSPORT": "kernel", "MESSAGE": message}


def _unit(second, unit, message_id):
    return {"__MONOTONIC_TIMESTAMP": str(int(second * 1e6)), "UNIT": unit, "MESSAGE_ID": message_id, "MESSAGE": "x"}


STARTING, STARTED, FAILED = timeline.STARTING, timeline.STARTED, timeline.FAILED


def test_first_of_units_last_of_renames_and_failures_are_ends():
    early = "gpufab-restore@early.service"
    found = timeline.times(
        [
            _unit(13.5, early, STARTING),
            _kernel(31.0, "mlx5_core: Intel(R) Gigabit Ethernet Network Driver"),
            _kernel(32.0, "mlx5_core 0000:41:00.0 rail0: renamed from eth0"),
            _kernel(33.25, "mlx5_core 0000:81:00.0 rail1: renamed from eth1"),
            _unit(40.0, early, FAILED),
            _unit(90.0, early, STARTED),
            _unit(41.0, "network.target", STARTED),
            {"__MONOTONIC_TIMESTAMP": "1", "_TRANSPORT": "kernel", "MESSAGE": [1, 2]},  # bytes that are no text
        ]
    )
    assert found == {
        "early begun": 13.5,
        "NIC driver": 31.0,
        "renames done": 33.25,
        "early ended": 40.0,
        "network": 41.0,
    }


def test_what_did_not_happen_is_a_dash():
    rows = timeline.table({"one": {"sshd": 2.0}, "two": {}}).splitlines()
    assert rows[0].split() == ["one", "two"]
    assert rows[-1].split() == ["sshd", "2.0", "-"]
