"""Prints what nvidia-ml-py sees, as JSON; with names of functions: what each answers."""

import json
import sys

import pynvml


def processes(found):
    return [[p.pid, p.usedGpuMemory >> 20, p.gpuInstanceId] for p in found]


def mig_devices(gpu):
    found = []
    for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)
        except pynvml.NVMLError_NotFound:
            continue
        found.append(
            {
                "index": index,
                "name": pynvml.nvmlDeviceGetName(mig),
                "uuid": pynvml.nvmlDeviceGetUUID(mig),
                "memory_mib": pynvml.nvmlDeviceGetMemoryInfo(mig).total >> 20,
                "processes": processes(pynvml.nvmlDeviceGetComputeRunningProcesses(mig)),
            }
        )
    return found


def utilization(gpu):
    try:
        return pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu
    except pynvml.NVMLError_NotSupported:
        return None


def describe(gpu):
    memory = pynvml.nvmlDeviceGetMemoryInfo(gpu, version=pynvml.nvmlMemory_v2)
    field = pynvml.nvmlDeviceGetFieldValues(gpu, [pynvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION])[0]
    return {
        "name": pynvml.nvmlDeviceGetName(gpu),
        "bus_id": pynvml.nvmlDeviceGetPciInfo(gpu).busId,
        "memory_mib": memory.total >> 20,
        "used_mib": memory.used >> 20,
        "reserved_mib": memory.reserved >> 20,
        "power_limit_w": pynvml.nvmlDeviceGetEnforcedPowerLimit(gpu) / 1000,
        "utilization": utilization(gpu),
        "energy_field": field.nvmlReturn,
        "mig_enabled": pynvml.nvmlDeviceGetMigMode(gpu)[0] == 1,
        "compute": processes(pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)),
        "graphics": processes(pynvml.nvmlDeviceGetGraphicsRunningProcesses(gpu)),
        "mig": mig_devices(gpu),
    }


def answer_of(name, gpu):
    try:
        getattr(pynvml, name)(gpu)
        return "answers"
    except pynvml.NVMLError as error:
        return type(error).__name__


def main():
    pynvml.nvmlInit()
    gpus = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
    if len(sys.argv) > 1:
        print(json.dumps({name: answer_of(name, gpus[0]) for name in sys.argv[1:]}))
        return
    print(
        json.dumps(
            {
                "driver": pynvml.nvmlSystemGetDriverVersion(),
                "cuda": pynvml.nvmlSystemGetCudaDriverVersion(),
                "gpus": [describe(gpu) for gpu in gpus],
            }
        )
    )


main()
