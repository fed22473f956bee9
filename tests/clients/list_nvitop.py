"""Prints what nvitop's API sees, as JSON."""

import json

import nvitop


def number(value):
    return value if isinstance(value, (int, float)) else None


def describe(device):
    return {
        "name": device.name(),
        "used_mib": device.memory_used() >> 20,
        "total_mib": device.memory_total() >> 20,
        "utilization": number(device.gpu_utilization()),
        "power_limit_w": device.power_limit() / 1000,
        "mig_enabled": device.is_mig_mode_enabled(),
        "processes": sorted([pid, p.gpu_memory() >> 20, p.type] for pid, p in device.processes().items()),
        "mig": [
            {
                "index": mig.mig_index,
                "name": mig.name(),
                "total_mib": mig.memory_total() >> 20,
                "used_mib": mig.memory_used() >> 20,
                "processes": sorted([pid, p.gpu_memory() >> 20] for pid, p in mig.processes().items()),
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
