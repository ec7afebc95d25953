"""Usage texts of iproute2's dcb for the objects that are emulated, as it prints them after a word it does not know."""

_PFC_SHOW = """\
Usage: dcb [ -s ] pfc show dev STRING
           [ pfc-cap ] [ prio-pfc ] [ macsec-bypass ]
           [ delay ] [ requests ] [ indications ]

"""
_PFC_SET = """\
Usage: dcb pfc set dev STRING
           [ prio-pfc PFC-MAP ]
           [ macsec-bypass { on | off } ]
           [ delay INTEGER ]

 where PFC-MAP := [ PFC-MAP ] PFC-MAPPING
       PFC-MAPPING := { all | TC }:PFC
       TC := { 0 .. 7 }
       PFC := { on | off }

"""
_ETS_SHOW = """\
Usage: dcb ets show dev STRING
           [ willing ] [ ets-cap ] [ cbs ] [ tc-tsa ]
           [ reco-tc-tsa ] [ pg-bw ] [ tc-bw ] [ reco-tc-bw ]
           [ prio-tc ] [ reco-prio-tc ]

"""
_ETS_SET = """\
Usage: dcb ets set dev STRING
           [ willing { on | off } ]
           [ { tc-tsa | reco-tc-tsa } TSA-MAP ]
           [ { pg-bw | tc-bw | reco-tc-bw } BW-MAP ]
           [ { prio-tc | reco-prio-tc } PRIO-MAP ]

 where TSA-MAP := [ TSA-MAP ] TSA-MAPPING
       TSA-MAPPING := { all | TC }:{ strict | cbs | ets | vendor }
       BW-MAP := [ BW-MAP ] BW-MAPPING
       BW-MAPPING := { all | TC }:INTEGER
       PRIO-MAP := [ PRIO-MAP ] PRIO-MAPPING
       PRIO-MAPPING := { all | PRIO }:TC
       TC := { 0 .. 7 }
       PRIO := { 0 .. 7 }

"""
_BUFFER_SHOW = """\
Usage: dcb buffer show dev STRING
           [ prio-buffer ] [ buffer-size ] [ total-size ]

"""
_BUFFER_SET = """\
Usage: dcb buffer set dev STRING
           [ prio-buffer PRIO-MAP ]
           [ buffer-size SIZE-MAP ]

 where PRIO-MAP := [ PRIO-MAP ] PRIO-MAPPING
       PRIO-MAPPING := { all | PRIO }:BUFFER
       SIZE-MAP := [ SIZE-MAP ] SIZE-MAPPING
       SIZE-MAPPING := { all | BUFFER }:INTEGER
       PRIO := { 0 .. 7 }
       BUFFER := { 0 .. 7 }

"""
_DCBX_SHOW = "Usage: dcb dcbx show dev STRING\n\n"
_DCBX_SET = """\
Usage: dcb dcbx set dev STRING
           [ host | lld-managed ]
           [ cee | ieee ] [ static ]

"""
_APP_SHOW = """\
Usage: dcb app { show | flush } dev STRING
           [ default-prio ]
           [ ethtype-prio ]
           [ stream-port-prio ]
           [ dgram-port-prio ]
           [ port-prio ]
           [ dscp-prio ]
           [ pcp-prio ]

"""
_APP_ADD = """\
Usage: dcb app { add | del | replace } dev STRING
           [ default-prio PRIO ]
           [ ethtype-prio ET:PRIO ]
           [ stream-port-prio PORT:PRIO ]
           [ dgram-port-prio PORT:PRIO ]
           [ port-prio PORT:PRIO ]
           [ dscp-prio INTEGER:PRIO ]
           [ pcp-prio PCP:PRIO ]

 where PRIO := { 0 .. 7 }
       ET := { 0x600 .. 0xffff }
       PORT := { 1 .. 65535 }
       DSCP := { 0 .. 63 }
       PCP := { 0(nd/de) .. 7(nd/de) }

"""

USAGE = {
    ("pfc", "show"): _PFC_SHOW,
    ("pfc", "set"): _PFC_SET,
    ("ets", "show"): _ETS_SHOW,
    ("ets", "set"): _ETS_SET,
    ("buffer", "show"): _BUFFER_SHOW,
    ("buffer", "set"): _BUFFER_SET,
    ("dcbx", "show"): _DCBX_SHOW,
    ("dcbx", "set"): _DCBX_SET,
    ("app", "show"): _APP_SHOW,
    ("app", "flush"): _APP_SHOW,
    ("app", "add"): _APP_ADD,
    ("app", "del"): _APP_ADD,
    ("app", "replace"): _APP_ADD,
}
