#pragma once

// The ABI of device plug-ins. A plug-in is a shared library with one symbol, assay_device_plugin,
// which returns this table. The host checks the versions in it before it uses anything else.
//
// A function with an int result returns 0 for success, or a code that describe() explains.

#include <cstdint>

#include "device/device.h"
#include "fill/fill.h"
#include "measure/measurement.h"

namespace assay {

inline constexpr std::uint32_t kDevicePluginAbi = 2;
inline constexpr const char* kDevicePluginSymbol = "assay_device_plugin";
inline constexpr const char* kDevicePluginFile = "libassay_cuda.so";
// Shared allocations up to this size stay open between cases; larger ones are closed after each.
inline constexpr std::uint64_t kKeepOpenBytes = std::uint64_t{64} << 20;
// The limit for all open allocations of one lane: its framework may have freed them.
inline constexpr std::uint64_t kKeepOpenBytesInAll = 4 * kKeepOpenBytes;

}  // namespace assay

extern "C" {

struct AssayDevice;  // defined by the plug-in

struct AssayDevicePlugin {
  std::uint32_t abi;  // kDevicePluginAbi
  // The versions that the plug-in was built with. They must match the host's.
  std::uint32_t fill_version;
  std::uint32_t measurement_version;
  std::uint32_t measurement_bytes;
  std::uint32_t needs_driver;  // the oldest driver's CUDA version: 13000 for 13.0
  const char* name;            // "CUDA 13.0"

  const char* (*describe)(int code);
  int (*open)(int number, AssayDevice** device);
  void (*close)(AssayDevice* device);
  int (*fill)(AssayDevice* device, const assay::FillRule* rule, const assay::FillKey* key,
              std::uint8_t dtype, void* out, std::uint64_t count, std::uint64_t first_element);
  int (*checksum)(AssayDevice* device, const void* memory, std::uint64_t bytes,
                  std::uint64_t* result);
  int (*copy)(AssayDevice* device, void* to, const void* from, std::uint64_t bytes);
  int (*synchronize)(AssayDevice* device);
  int (*mark)(AssayDevice* device);
  int (*reached)(AssayDevice* device, bool* yes);
  int (*measure)(AssayDevice* device, std::uint8_t dtype, const void* left, const void* right,
                 std::uint64_t count, const assay::Tolerance* under, assay::Measurement* result);
  int (*allocate)(AssayDevice* device, std::uint64_t bytes, void** memory);
  void (*release)(AssayDevice* device, void* memory);
  int (*space)(AssayDevice* device, assay::DeviceSpace* space);
  int (*pin)(AssayDevice* device, void* host, std::uint64_t bytes);
  void (*unpin)(AssayDevice* device, void* host);
  int (*share)(AssayDevice* device, const void* memory, std::uint64_t bytes,
               assay::SharedMemory* shared);
  void (*end_sharing)(AssayDevice* device);
  int (*open_shared)(AssayDevice* device, const assay::SharedMemory* shared,
                     assay::OpenedMemory* opened);
  void (*close_shared)(AssayDevice* device, std::byte* base);
};

using AssayDevicePluginEntry = const AssayDevicePlugin* (*)();
}
