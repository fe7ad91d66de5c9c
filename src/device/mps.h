#pragma once

// NVIDIA's Multi-Process Service (MPS) for the processes of one run. Without MPS the GPU switches
// between processes, at 150 µs a switch; with MPS their kernels run concurrently. A fault in one
// client of MPS ends all of its clients.

#include <string>

#include "base/private_folder.h"
#include "base/process.h"
#include "base/result.h"

namespace assay {

class MpsService {
 public:
  // Starts the daemon in a new folder. Only processes that know the folder use it, and no GPU
  // changes its compute mode. An error if the program is missing or does not listen within 10 s.
  static Result<MpsService> start();
  MpsService(MpsService&&) = default;
  MpsService& operator=(MpsService&&) = default;
  // Ends the daemon with its servers, and removes the folder.
  ~MpsService();

  // The environment entry "NAME=value" that makes a process a client of the service.
  std::string environment() const;

 private:
  MpsService() = default;

  PrivateFolder folder_;
  Process daemon_;
};

}  // namespace assay
