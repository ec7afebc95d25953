"""Turns at a jump host."""

import threading
from contextlib import ExitStack

from gpufab_cli.reach.jump_limit import LIMIT, Handshakes, forks_through
from gpufab_cli.reach.target import Target


def enter(handshakes, jump, entered, leave):
    """A connection in a thread: ``entered`` is set when it has its turn."""

    def run():
        with handshakes.through(jump, lambda _: None):
            entered.set()
            leave.wait(10)

    threading.Thread(target=run, daemon=True).start()


def test_no_more_than_the_limit_and_the_next_as_soon_as_one_stands():
    handshakes, entered, leave = Handshakes(1, 60), threading.Event(), threading.Event()
    with handshakes.through("bastion", lambda _: None) as connected:
        enter(handshakes, "bastion", entered, leave)
        assert not entered.wait(0.1)
        connected()
        assert entered.wait(10)
    leave.set()


def test_one_that_hangs_holds_up_no_other():
    handshakes, entered, leave = Handshakes(1, 0.05), threading.Event(), threading.Event()
    with handshakes.through("bastion", lambda _: None):
        enter(handshakes, "bastion", entered, leave)
        assert entered.wait(10)
    leave.set()


def test_other_jump_hosts_have_turns_of_their_own():
    with ExitStack() as stack:
        handshakes = Handshakes(1, 60)
        for jump in ("bastion", "other", "", "", ""):
            stack.enter_context(handshakes.through(jump, lambda _: None))


def test_a_turn_ends_once():
    handshakes, entered, leave = Handshakes(1, 60), threading.Event(), threading.Event()
    with handshakes.through("bastion", lambda _: None) as connected:
        connected()
        connected()
    with handshakes.through("bastion", lambda _: None):
        enter(handshakes, "bastion", entered, leave)
        assert not entered.wait(0.1)
    leave.set()


def test_the_wait_is_told():
    told = []
    with Handshakes(1, 60).through("bastion", told.append):
        assert len(told) == 1


def test_ansible_keeps_to_it_too(tmp_path):
    (tmp_path / "ssh_config").write_text("Host far*\n  ProxyJump bastion\n")
    near, far = (Target(n, n, None, None, tmp_path / "ssh_config", "none", "p", "active") for n in ("near", "far1"))
    assert forks_through([near], 64) == 64
    assert forks_through([near, far], 64) == LIMIT
    assert forks_through([far], 2) == 2
