#pragma once

// NVIDIA's Multi-Process Service (MPS) for the processes of one run. Without it the processes on a
// GPU take turns, and a turn costs 150 µs; with it their kernels run beside each other. Its price:
// a fault in one of them ends all.

#include <filesystem>
#include <string>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"

namespace assay {

class MpsService {
 public:
  // Starts its daemon in a new folder, so that nobody else's processes come to it and no GPU's mode
  // is changed. An error where the program is missing, or does not begin to listen within 10 s.
  static Result<MpsService> start();
  MpsService(MpsService&& other) noexcept;
  MpsService& operator=(MpsService&& other) noexcept;
  // Ends the daemon with its servers, and removes the folder. A process that is killed leaves its
  // folder behind, which the next start() of anybody who may do so removes.
  ~MpsService();

  // "NAME=value": with it in its environment a process computes through the service.
  std::string environment() const;

 private:
  MpsService() = default;

  std::filesystem::path folder_;
  Fd lock_;  // of a file in the folder, held for as long as somebody needs it
  Process daemon_;
};

}  // namespace assay
