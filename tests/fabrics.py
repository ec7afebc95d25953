"""A small valid fabric to change one thing of, and its lock."""

from gpufab_cli.errors import SpecErrors
from gpufab_cli.fabric.resolve import resolve
from gpufab_cli.intent.compile import compile_wants
from gpufab_cli.spec import source
from gpufab_cli.spec.load import validate
from gpufab_cli.spec.lock import Lock, LockedGpu, LockedHost, LockedPort
from gpufab_cli.spec.model import FabricSpec

SMALL = """\
name: small
networks:
  compute: {transport: roce, speed_gbps: 400, mtu: 9000, rails: 2, qos: dcqcn}
  management: {transport: ethernet, speed_gbps: 10}
qos:
  dcqcn:
    lossless: [{priority: 3, dscp: [26]}]
    cnp: {priority: 6, dscp: 48}
    ets: {3: 60, 0: 40}
profiles:
  box:
    ports: [{network: compute, rail: 0-1}]
hosts:
  - {name: "gpu[01-03]", profile: box, address: "10.0.0.[11-13]"}
connection: {user: ops}
"""


def changed(*replacements):
    """The text of SMALL with pieces replaced; each must be there once."""
    text = SMALL
    for old, new in replacements:
        assert text.count(old) == 1, f"{old!r} is in the fabric {text.count(old)} times"
        text = text.replace(old, new)
    return text


def spec(*replacements):
    return validate(source.parse(changed(*replacements), "fabric.yml"), FabricSpec)


def refusals(*replacements):
    """What is wrong with the changed fabric, without file and line."""
    return text_refusals(changed(*replacements))


def text_refusals(text, model=FabricSpec):
    try:
        validate(source.parse(text, "f"), model)
    except SpecErrors as errors:
        return [error.message.partition(": ")[2] for error in errors.errors]
    return []


PSID = "MT_0000000838"


def locked_port(host, rail):
    mac = f"02:00:00:00:{host:02x}:{rail:02x}"
    return LockedPort(pci=f"0000:{rail + 1}8:00.0", mac=mac, serial=f"SN{host}{rail}", psid=PSID)


def lock(hosts=(1, 2, 3), rails=2):
    ports = {host: {f"compute/{rail}": locked_port(host, rail) for rail in range(rails)} for host in hosts}
    gpus = (LockedGpu(pci="0000:1b:00.0"),)
    return Lock(hosts={f"gpu{host:02d}": LockedHost(ports=ports[host], gpus=gpus) for host in hosts})


def compiled(fabric, locked):
    """What each host of a fabric with a lock is told."""
    return compile_wants(resolve(fabric, locked))
