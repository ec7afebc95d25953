"""What a dataclass cannot say of its module and role: a few words and an example."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """The words of one feature.

    Attributes:
        title: one line without a full stop.
        text: paragraphs.
        example: the module's options in an example task, as YAML.
    """

    feature: str
    title: str
    text: tuple[str, ...]
    example: str


PAGES: tuple[Page, ...] = (
    Page(
        feature="node",
        title="What a node needs so that every other feature survives a reboot",
        text=(
            "Keeps gpufab's own program, systemd units and udev rule on the node. They bring back at boot, and when a "
            "driver is loaded anew, what the other features set: most of it the hardware forgets.",
            "Removes kept wishes of features that are no longer managed. Needs no consent: traffic is not touched.",
        ),
        example="features: [roce]\n",
    ),
    Page(
        feature="roce",
        title="Lossless, fair RoCE ports",
        text=(
            "Makes one lossless class out of what must agree on a port: global pause off, trust in DSCP, the DSCP map, "
            "PFC, ETS, ECN, CNP marking and the defaults of RDMA-CM. One port is one step: it is made whole and read "
            "back, or undone.",
            "A step that interrupts traffic or the link is made only with consent, on an idle node; else it is "
            "reported as refused. MTU, addresses and links are the site's own and only checked.",
            "A value that cannot be read is unknown: nothing is written over it, and a run that is no dry run fails.",
        ),
        example="""\
qos:
  dcqcn:
    # 64 numbers: the priority of each DSCP
    dscp_priority: "{{ [0] * 26 + [3] + [0] * 21 + [6] + [0] * 15 }}"
    pfc: [3]
    ecn: [3]
    cnp_dscp: 48
    cnp_priority: 6
ports:
  - {rail: compute/0, pci: "0000:18:00.0", qos: dcqcn}
allow: [traffic, link-flap]
""",
    ),
)
