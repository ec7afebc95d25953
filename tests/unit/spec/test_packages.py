"""RDMA stack and NCCL in a fabric.yml: what is refused, what each host is told, and OpenPGP keys."""

import base64
import textwrap

import pytest

from gpufab_cli.module_utils.packages.want import NcclWant, OfedWant
from gpufab_cli.module_utils.schema import decode, encode
from gpufab_cli.spec.openpgp import KeyFormatError, fingerprints
from tests.fabrics import compiled, lock, refusals, spec
from tests.unit.core.packages_node import FINGERPRINT, KEY

PORTS = "ports: [{network: compute, rail: 0-1}]"
OTHER = "0123456789ABCDEF0123456789ABCDEF01234567"


def repository(**changes):
    fields = {"url": '"https://m.example/{version}/{platform}"', "fingerprint": f'"{FINGERPRINT}"', **changes}
    lines = [f"{name}: {value}" for name, value in fields.items() if name != "key"]
    key = textwrap.indent(changes.get("key", KEY), "  ")
    return textwrap.indent(
        "\n".join(["repository:", *(f"  {line}" for line in lines), "  key: |", textwrap.indent(key, "  ")]), "  "
    )


def with_profile(*parts):
    text = "\n".join(parts)
    return (PORTS, PORTS + "\n" + textwrap.indent(text, "    "))


def stack(line, **changes):
    return with_profile(f"rdma:\n  {line}", repository(**changes))


def armoured(data):
    return (
        f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{base64.b64encode(data).decode()}\n-----END PGP PUBLIC KEY BLOCK-----"
    )


DOCA = 'stack: doca-ofed\n  version: "3.2.0"'


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (stack(DOCA), []),
        (with_profile("rdma: {stack: inbox}"), []),
        (with_profile('rdma: {stack: mlnx-ofed, version: "24.10-2.1.8.0"}'), []),
        (with_profile("nccl: {source: distribution}"), []),
        (with_profile('nccl: {version: "2.27.5", cuda: "12.9"}'), []),
        (with_profile("rdma: {stack: doca-ofed}"), ["doca-ofed needs one"]),
        (with_profile('rdma: {stack: inbox, version: "3"}'), ["in its own version"]),
        (with_profile("rdma: {stack: inbox, modules: dkms}"), ["rdma.modules: inbox is the"]),
        (with_profile('rdma: {stack: mlnx-ofed, version: "24.10", profile: doca-all}'), ["mlnx-ofed has none"]),
        (with_profile('nccl: {version: "2.27.5"}'), ["the vendor's NCCL needs one"]),
        (with_profile('nccl: {source: distribution, cuda: "12.9"}'), ["the distribution's NCCL has none"]),
        (with_profile('nccl: {version: "2.27.5", cuda: 12.9}'), ["12.9 is read as a number, text is wanted"]),
        (stack(DOCA, fingerprint=f'"{OTHER}"'), [f"the key's is {FINGERPRINT}"]),
        (stack(DOCA, fingerprint="12AB"), ["fingerprint"]),
        (stack(DOCA, key=KEY.replace("mDMEaw2G", "mDMEaw2")), ["not a public key"]),
        (stack(DOCA, key=KEY + armoured(b"\x98\x33\x04" + bytes(50))), ["more than one block"]),
        (stack(DOCA, suite="stable"), ["none of suite stable is named"]),
        (stack(DOCA, components="[main]"), ["a flat repository has none"]),
        (stack(DOCA, url='"https://user:secret@m.example/x"'), ["is not a URL"]),
        (stack(DOCA, url='"http://m.example/x; rm -rf"'), ["is not a URL"]),
    ],
)
def test_what_is_said_of_a_profile(change, said):
    found = refusals(change)
    assert len(found) == len(said), found
    assert all(words in message for words, message in zip(said, found, strict=True)), found


def test_each_host_is_told_what_its_profile_says():
    found = compiled(spec(stack(DOCA, fingerprint=f'"{FINGERPRINT[:20].lower()} {FINGERPRINT[20:]}"')), lock())
    want = found["gpu02"]["ofed"]
    assert (want.stack, want.version, want.profile, want.firmware_updater) == ("doca-ofed", "3.2.0", "doca-ofed", False)
    assert want.repository.url == "https://m.example/3.2.0/{platform}"
    assert want.repository.fingerprint == FINGERPRINT
    assert decode(OfedWant, encode(want)) == want
    assert "nccl" not in found["gpu02"]


def test_nccl_is_told_with_its_cuda():
    want = compiled(spec(with_profile('nccl: {version: "2.27.5", cuda: "12.9", tests: true}')), lock())["gpu01"]["nccl"]
    assert want == NcclWant("vendor", "2.27.5", "12.9", True, True)


def test_a_fabric_that_names_neither_tells_nothing():
    assert not {"ofed", "nccl"} & set(compiled(spec(), lock())["gpu01"])


def test_a_key_is_known_by_its_fingerprint():
    assert fingerprints(KEY) == (FINGERPRINT,)
    assert fingerprints(KEY.replace("\n", "\r\n")) == (FINGERPRINT,)
    assert fingerprints(KEY.replace("BLOCK-----\n\n", "BLOCK-----\nComment: a header\n\n")) == (FINGERPRINT,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no key", "no ASCII armour"),
        (KEY + KEY, "more than one block"),
        (KEY + "-----BEGIN PGP PUBLIC KEY BLOCK----- \n", "more than one block"),
        (armoured(b""), "no public key"),
        (armoured(b"\xb4\x04test"), "no public key"),  # a user id alone
        (armoured(b"\x98\x33\x04"), "does not end where it says"),
        (armoured(b"\x99\x01"), "damaged"),
        (armoured(b"\xc6"), "damaged"),
        ("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n!!!!\n-----END PGP PUBLIC KEY BLOCK-----", "damaged"),
    ],
)
def test_what_is_no_key_is_refused(text, words):
    with pytest.raises(KeyFormatError, match=words):
        fingerprints(text)


def test_packets_of_the_current_format_and_of_version_6_are_read():
    body = b"\x06" + bytes(40)
    assert len(fingerprints(armoured(b"\xc6\x29" + body))[0]) == 64
    long = b"\x04" + bytes(299)
    assert len(fingerprints(armoured(b"\xc6" + bytes([192, 300 - 192]) + long))[0]) == 40
    assert len(fingerprints(armoured(b"\xc6\xff" + (300).to_bytes(4, "big") + long))[0]) == 40
