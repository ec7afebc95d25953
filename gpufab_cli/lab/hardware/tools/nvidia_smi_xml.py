"""`nvidia-smi -q -x`: the part of the XML log (nvsmi_device_v12.dtd) that is about clocks, power and modes."""

from gpufab_cli.lab.hardware import gpu_software, gpus
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools.nvidia_smi_words import bus_id, flag

_HEAD = """\
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
\t<driver_version>{driver}</driver_version>
\t<attached_gpus>{count}</attached_gpus>
"""
_GPU = """\
\t<gpu id="{where}">
\t\t<product_name>{name}</product_name>
\t\t<persistence_mode>{persistence}</persistence_mode>
\t\t<mig_mode>
\t\t\t<current_mig>{mig}</current_mig>
\t\t\t<pending_mig>{mig_pending}</pending_mig>
\t\t</mig_mode>
\t\t<uuid>{uuid}</uuid>
\t\t<fabric>
\t\t\t<state>{fabric[0]}</state>
\t\t\t<status>{fabric[1]}</status>
\t\t</fabric>
\t\t<clocks_event_reasons>
\t\t\t<clocks_event_reason_gpu_idle>{idle}</clocks_event_reason_gpu_idle>
\t\t\t<clocks_event_reason_sw_power_cap>{capped}</clocks_event_reason_sw_power_cap>
\t\t\t<clocks_event_reason_sw_thermal_slowdown>{hot}</clocks_event_reason_sw_thermal_slowdown>
\t\t</clocks_event_reasons>
\t\t<ecc_mode>
\t\t\t<current_ecc>{ecc}</current_ecc>
\t\t\t<pending_ecc>{ecc_pending}</pending_ecc>
\t\t</ecc_mode>
\t\t<gpu_power_readings>
\t\t\t<current_power_limit>{limit:.2f} W</current_power_limit>
\t\t\t<requested_power_limit>{limit:.2f} W</requested_power_limit>
\t\t\t<default_power_limit>{high:.2f} W</default_power_limit>
\t\t\t<min_power_limit>{low:.2f} W</min_power_limit>
\t\t\t<max_power_limit>{high:.2f} W</max_power_limit>
\t\t</gpu_power_readings>
\t\t<clocks>
\t\t\t<graphics_clock>{clock} MHz</graphics_clock>
\t\t</clocks>
\t\t<max_clocks>
\t\t\t<graphics_clock>{top} MHz</graphics_clock>
\t\t</max_clocks>
\t</gpu>
"""


def log(hw: Hardware, chosen: list[int]) -> str:
    """The whole log."""
    head = _HEAD.format(driver=gpu_software.running(hw), count=len(hw.machine.gpus))
    return head + "".join(_gpu(hw, index) for index in chosen) + "</nvidia_smi_log>\n"


def _gpu(hw: Hardware, index: int) -> str:
    model, gpu, bits = hw.machine.gpu, hw.state.gpus[index], gpus.reasons(hw, index)
    return _GPU.format(
        where=bus_id(hw, index),
        name=model.name,
        uuid=hw.identity.gpu_uuid(index),
        fabric=gpu_software.fabric(hw),
        persistence=flag(gpu.persistence),
        mig=flag(gpu.mig) if model.mig else "N/A",
        mig_pending=flag(gpu.mig_pending) if model.mig else "N/A",
        ecc=flag(gpu.ecc) if model.ecc else "N/A",
        ecc_pending=flag(gpu.ecc_pending) if model.ecc else "N/A",
        idle=_active(bits & gpus.IDLE),
        capped=_active(bits & gpus.POWER_CAP),
        hot=_active(bits & gpus.SW_THERMAL),
        limit=gpus.limit(hw, index),
        low=float(model.power_w[0]),
        high=float(model.power_w[1]),
        clock=gpus.graphics_clock(hw, index),
        top=model.sm_mhz,
    )


def _active(bit: int) -> str:
    return "Active" if bit else "Not Active"
