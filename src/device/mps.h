#pragma once

// NVIDIA's Multi-Process Service (MPS) for the processes of one run. Without MPS the GPU switches
// between processes, at 150 µs a switch; with MPS their kernels run concurrently. A fault in one
// client of MPS ends all of its clients.

#include <filesystem>
#include <string>

#include "base/fd.h"
#include "base/process.h"
#include "base/result.h"

namespace assay {

class MpsService {
 public:
  // Starts the daemon in a new folder. Only processes that know the folder use it, and no GPU
  // changes its compute mode. An error if the program is missing or does not listen within 10 s.
  static Result<MpsService> start();
  MpsService(MpsService&& other) noexcept;
  MpsService& operator=(MpsService&& other) noexcept;
  // Ends the daemon with its servers, and removes the folder. A killed process leaves its folder
  // behind; a later start() with the rights to do so removes it.
  ~MpsService();

  // The environment entry "NAME=value" that makes a process a client of the service.
  std::string environment() const;

 private:
  MpsService() = default;

  std::filesystem::path folder_;
  Fd lock_;  // locks a file in the folder while the folder is in use
  Process daemon_;
};

}  // namespace assay
