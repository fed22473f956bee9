module gpuassay.invalid/tests/clients/go

go 1.19

require github.com/NVIDIA/go-nvml v0.12.4-1
