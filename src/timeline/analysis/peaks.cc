#include "timeline/analysis/peaks.h"

#include <array>

namespace assay::timeline {
namespace {

struct DataSheet {
  std::string_view name;    // part of the driver's name
  std::string_view not_in;  // part of the names of slower variants
  double gbps;
  double link;                           // GB/s to all other GPUs of the host, in one direction
  double fp64, fp32, tf32, half, bits8;  // TFLOP/s; 0: the GPU lacks the type
};

// fp64 and fp32 without tensor cores on NVIDIA's GPUs: PyTorch's default for matrix products of
// fp32; tf32 where a kernel's name says so. The data sheets' figures with sparsity are halved.
// V100 SXM2: nvidia.com "V100 data sheet" (2020). A100 SXM: "A100 data sheet" (2021). H100 SXM:
// "H100 data sheet" (2023), exact figures of "H100 Tensor Core GPU Architecture" V1.04. H200:
// "H200 data sheet" (2024). B200: "HGX B200 data sheet" (2024), by GPU. MI300X: amd.com
// "Instinct MI300X data sheet" (2023), with matrix cores. Links (NVLink, Infinity Fabric): half of
// the sheets' figures, which count both directions.
constexpr std::array<DataSheet, 7> kDataSheets{{
    {"V100", "PCIE", 900, 150, 7.8, 15.7, 0, 125, 0},
    {"A100-SXM4-40GB", "-", 1555, 300, 9.7, 19.5, 156, 312, 624},
    {"A100-SXM4-80GB", "-", 2039, 300, 9.7, 19.5, 156, 312, 624},
    {"H100 80GB HBM3", "-", 3350, 450, 33.5, 66.9, 494.7, 989.4, 1978.9},
    {" H200", "NVL", 4800, 450, 33.5, 66.9, 494.7, 989.4, 1978.9},
    {" B200", "-", 8000, 900, 37, 75, 1125, 2250, 4500},
    {"MI300X", "-", 5300, 448, 163.4, 163.4, 653.7, 1307.4, 2614.9},
}};

double tflops_of(const DataSheet& device, std::string_view dtype) {
  if (dtype == "bf16") return device.name == "V100" ? 0 : device.half;
  if (dtype == "fp16") return device.half;
  if (dtype == "fp8" || dtype == "int8") return device.bits8;
  if (dtype == "tf32") return device.tf32;
  if (dtype == "fp32") return device.fp32;
  return dtype == "fp64" ? device.fp64 : 0;
}

}  // namespace

Peak peak_of(std::string_view name, std::string_view dtype) {
  for (const DataSheet& device : kDataSheets) {
    if (name.find(device.name) == std::string_view::npos) continue;
    if (device.not_in != "-" && name.find(device.not_in) != std::string_view::npos) continue;
    Peak peak{tflops_of(device, dtype), device.gbps, device.link};
    // A100 computes int8, not fp8.
    if (dtype == "fp8" && device.name.starts_with("A100")) peak.tflops = 0;
    return peak;
  }
  return {};
}

}  // namespace assay::timeline
