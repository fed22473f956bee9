#include "sources/nvml/identity.h"

#include <gtest/gtest.h>

#include <cstring>

#include "sources/nvml/fake_driver.h"

namespace gpuassay {
namespace {

TEST(GpuIdentity, IsReadAsTheDriverTellsIt) {
  FakeDriver driver;
  driver.nvmlDeviceGetName = [](nvmlDevice_t, char* text, unsigned int length) {
    PutText(text, length, "NVIDIA H100 80GB HBM3");
    return NVML_SUCCESS;
  };
  driver.nvmlDeviceGetVbiosVersion = [](nvmlDevice_t, char* text, unsigned int length) {
    PutText(text, length, "96.00.74.00.01");
    return NVML_SUCCESS;
  };
  driver.nvmlDeviceGetPciInfo_v3 = [](nvmlDevice_t, nvmlPciInfo_t* pci) {
    std::strcpy(pci->busId, "00000000:1A:00.0");
    return NVML_SUCCESS;
  };
  driver.nvmlDeviceGetMinorNumber = [](nvmlDevice_t, unsigned int* minor) {
    *minor = 4;
    return NVML_SUCCESS;
  };
  driver.nvmlDeviceGetArchitecture = [](nvmlDevice_t, unsigned int* architecture) {
    *architecture = 9;
    return NVML_SUCCESS;
  };
  auto library = NvmlLibrary::FromResolver(driver.Resolve(), "fake", nullptr);
  DeviceCalls calls(*library, 0, FakeDriver::Handle(0));
  GpuIdentity identity;
  unsigned int architecture = 0;
  ReadGpuIdentity(calls, identity, architecture);
  EXPECT_EQ(identity.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(identity.vbios_version, "96.00.74.00.01");
  EXPECT_EQ(identity.serial, "");  // not supported
  EXPECT_EQ(identity.pci_bus_id, "00000000:1A:00.0");
  EXPECT_EQ(identity.minor_number, 4U);
  EXPECT_EQ(identity.architecture, "Hopper");
  EXPECT_EQ(architecture, 9U);
}

TEST(GpuIdentity, IsEmptyWhereTheDriverTellsNothing) {
  FakeDriver driver;
  auto library = NvmlLibrary::FromResolver(driver.Resolve(), "fake", nullptr);
  DeviceCalls calls(*library, 0, FakeDriver::Handle(0));
  GpuIdentity identity;
  unsigned int architecture = 5;
  ReadGpuIdentity(calls, identity, architecture);
  EXPECT_EQ(identity.name, "");
  EXPECT_EQ(identity.architecture, "");
  EXPECT_EQ(architecture, 0U);
  EXPECT_FALSE(identity.minor_number);
}

}  // namespace
}  // namespace gpuassay
