"""What a node is told of its restore at boot."""

import pytest

from gpufab_cli.errors import GpufabError
from gpufab_cli.intent.node import node_want
from gpufab_cli.module_utils.node.order import JOBS
from tests.fabrics import spec

CONNECTION = "connection: {user: ops}\n"


def test_nothing_said_is_a_minute_and_the_services_that_are_known():
    want = node_want(spec(), ("roce", "mpi"))
    assert (want.features, want.python, want.wait_s, want.jobs) == (("mpi", "roce"), "/usr/bin/python3", 60, JOBS)


def test_what_the_site_says():
    text = "connection: {python: /opt/py/bin/python3}\nrestore: {wait_s: 0, services: [site-batch]}\n"
    want = node_want(spec((CONNECTION, text)), ())
    assert (want.python, want.wait_s, want.jobs) == ("/opt/py/bin/python3", 0, ("site-batch",))


@pytest.mark.parametrize("text", ["{wait_s: 601}", "{wait_s: -1}", "{services: [a.service]}", "{services: ['a b']}"])
def test_what_makes_no_sense_is_refused(text):
    with pytest.raises(GpufabError, match="restore"):
        spec((CONNECTION, f"restore: {text}\n"))
