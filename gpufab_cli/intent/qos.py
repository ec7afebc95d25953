"""A QoS profile of the spec → what every port is told: one lossless class, from trust to ToS."""

from gpufab_cli.module_utils.roce.want import DSCPS, PRIORITIES, TSA, QosWant
from gpufab_cli.spec.model import Qos

ECT0 = 0b10  # ECN-capable transport, codepoint 0 (RFC 3168, section 5): switches mark such packets, drop others


def qos_want(qos: Qos) -> QosWant:
    """Everything that a port derives from its QoS profile."""
    lossless = tuple(sorted(item.priority for item in qos.lossless))
    tos = traffic_class(qos.lossless[0].dscp[0], ecn=qos.ecn)
    shares = _ets(qos)
    return QosWant(
        dscp_priority=dscp_map(qos),
        pfc=lossless if qos.pfc else (),
        prio_tc=tuple(range(PRIORITIES)) if shares else None,
        tc_tsa=tuple(tsa for tsa, _ in shares) if shares else None,
        tc_bw=tuple(share for _, share in shares) if shares else None,
        ecn=lossless if qos.ecn else (),
        cnp_dscp=qos.cnp.dscp if qos.cnp else None,
        cnp_priority=qos.cnp.priority if qos.cnp else None,
        traffic_class=tos if qos.traffic_class else None,
        rdma_cm_tos=tos if qos.rdma_cm else None,
        rdma_cm_mode=qos.rdma_cm.mode if qos.rdma_cm else None,
        cable_m=qos.cable_m,
        prio_buffer=qos.buffers.priority if qos.buffers else None,
        buffer_bytes=qos.buffers.bytes if qos.buffers else None,
        dcqcn=qos.dcqcn,
    )


def traffic_class(dscp: int, *, ecn: bool) -> int:
    """The traffic class (ToS) byte of a DSCP: six bits of DSCP above two of ECN. 26 is 104, with ECN 106."""
    return dscp << 2 | (ECT0 if ecn else 0)


def dscp_map(qos: Qos) -> tuple[int, ...]:
    """The priority of each of the 64 DSCPs."""
    found = dict.fromkeys(range(DSCPS), qos.other_dscp.priority) | qos.extra_dscp
    if qos.cnp:
        found[qos.cnp.dscp] = qos.cnp.priority
    for item in qos.lossless:
        found |= dict.fromkeys(item.dscp, item.priority)
    return tuple(found[dscp] for dscp in range(DSCPS))


def _ets(qos: Qos) -> tuple[tuple[TSA, int], ...]:
    """Algorithm and share of each traffic class; priority N is traffic class N. Empty: not managed.

    CNPs are few and late ones are useless: without a share their class is strict. The classes that nothing is mapped
    to become ets with a share of 0, which mlx5 takes (mlx5e_dcbnl_validate_ets wants the ets classes to sum to 100 and
    nothing of each) and reads back as such; strict, stray traffic there would starve the others.
    """
    if qos.ets is None:
        return ()
    strict = qos.cnp.priority if qos.cnp and qos.cnp.priority not in qos.ets else None
    return tuple(
        ("strict", 0) if priority == strict else ("ets", qos.ets.get(priority, 0)) for priority in range(PRIORITIES)
    )
