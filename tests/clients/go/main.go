// Lists what go-nvml sees: GPUs, their processes and MIG devices, as JSON. A client for the tests
// of the simulated driver.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

type process struct {
	Pid       uint32 `json:"pid"`
	MemoryMiB uint64 `json:"memory_mib"`
}

type mig struct {
	Index     int       `json:"index"`
	Name      string    `json:"name"`
	Uuid      string    `json:"uuid"`
	MemoryMiB uint64    `json:"memory_mib"`
	Processes []process `json:"processes"`
}

type gpu struct {
	Name         string    `json:"name"`
	Uuid         string    `json:"uuid"`
	BusId        string    `json:"bus_id"`
	MemoryMiB    uint64    `json:"memory_mib"`
	UsedMiB      uint64    `json:"used_mib"`
	PowerLimitMw uint32    `json:"power_limit_mw"`
	MigEnabled   bool      `json:"mig_enabled"`
	Processes    []process `json:"processes"`
	Graphics     []process `json:"graphics"`
	Mig          []mig     `json:"mig"`
}

func check(what string, ret nvml.Return) {
	if ret != nvml.SUCCESS {
		fmt.Fprintf(os.Stderr, "%s: %s\n", what, nvml.ErrorString(ret))
		os.Exit(1)
	}
}

func processes(list []nvml.ProcessInfo) []process {
	out := []process{}
	for _, p := range list {
		out = append(out, process{p.Pid, p.UsedGpuMemory >> 20})
	}
	return out
}

func busId(raw [32]int8) string {
	text := ""
	for _, c := range raw {
		if c == 0 {
			break
		}
		text += string(rune(c))
	}
	return text
}

func migDevices(device nvml.Device) []mig {
	out := []mig{}
	count, ret := device.GetMaxMigDeviceCount()
	check("GetMaxMigDeviceCount", ret)
	for i := 0; i < count; i++ {
		handle, ret := device.GetMigDeviceHandleByIndex(i)
		if ret == nvml.ERROR_NOT_FOUND {
			continue
		}
		check("GetMigDeviceHandleByIndex", ret)
		name, ret := handle.GetName()
		check("GetName", ret)
		uuid, ret := handle.GetUUID()
		check("GetUUID", ret)
		attributes, ret := handle.GetAttributes()
		check("GetAttributes", ret)
		running, ret := handle.GetComputeRunningProcesses()
		check("GetComputeRunningProcesses", ret)
		out = append(out, mig{i, name, uuid, attributes.MemorySizeMB, processes(running)})
	}
	return out
}

func describe(index int) gpu {
	device, ret := nvml.DeviceGetHandleByIndex(index)
	check("DeviceGetHandleByIndex", ret)
	out := gpu{}
	out.Name, ret = device.GetName()
	check("GetName", ret)
	out.Uuid, ret = device.GetUUID()
	check("GetUUID", ret)
	pci, ret := device.GetPciInfo()
	check("GetPciInfo", ret)
	out.BusId = busId(pci.BusId)
	memory, ret := device.GetMemoryInfo_v2()
	check("GetMemoryInfo_v2", ret)
	out.MemoryMiB, out.UsedMiB = memory.Total>>20, memory.Used>>20
	out.PowerLimitMw, ret = device.GetEnforcedPowerLimit()
	check("GetEnforcedPowerLimit", ret)
	current, _, ret := device.GetMigMode()
	check("GetMigMode", ret)
	out.MigEnabled = current == nvml.DEVICE_MIG_ENABLE
	compute, ret := device.GetComputeRunningProcesses()
	check("GetComputeRunningProcesses", ret)
	out.Processes = processes(compute)
	graphics, ret := device.GetGraphicsRunningProcesses()
	check("GetGraphicsRunningProcesses", ret)
	out.Graphics = processes(graphics)
	out.Mig = migDevices(device)
	return out
}

func main() {
	check("Init", nvml.Init())
	defer nvml.Shutdown()
	count, ret := nvml.DeviceGetCount()
	check("DeviceGetCount", ret)
	gpus := []gpu{}
	for i := 0; i < count; i++ {
		gpus = append(gpus, describe(i))
	}
	if err := json.NewEncoder(os.Stdout).Encode(gpus); err != nil {
		os.Exit(1)
	}
}
