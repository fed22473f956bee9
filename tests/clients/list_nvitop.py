"""Prints what nvitop's API sees, as JSON."""

import json

import nvitop


def number(value):
    return value if isinstance(value, (int, float)) else None


def processes(device, *names):
    return sorted(
        [pid, process.gpu_memory() >> 20, *(getattr(process, name) for name in names)]
        for pid, process in device.processes().items()
    )


def describe(device):
    return {
        "name": device.name(),
        "used_mib": device.memory_used() >> 20,
        "total_mib": device.memory_total() >> 20,
        "utilization": number(device.gpu_utilization()),
        "power_limit_w": device.power_limit() / 1000,
        "mig_enabled": device.is_mig_mode_enabled(),
        "processes": processes(device, "type"),
        "mig": [
            {
                "index": mig.mig_index,
                "name": mig.name(),
                "total_mib": mig.memory_total() >> 20,
                "used_mib": mig.memory_used() >> 20,
                "processes": processes(mig),
            }
            for mig in device.mig_devices()
        ],
    }


print(
    json.dumps(
        {
            "driver": nvitop.Device.driver_version(),
            "gpus": [describe(device) for device in nvitop.Device.all()],
        }
    )
)
