#pragma once

// Workers as an Indexed Job of Kubernetes.

#include <string>

#include "base/result.h"
#include "cluster/workers.h"

namespace assay {

struct KubernetesJob {
  Workers workers;
  std::string image;
  std::uint32_t gpus = 1;  // per worker
  std::string secret;      // name of the secret whose key `password` is the database's; "": none
};

// Returns a manifest in JSON for kubectl apply. The Job completes when every worker has found
// nothing left to do. A worker whose node is lost or drained is restarted.
Result<std::string> kubernetes_manifest(const KubernetesJob& job);

}  // namespace assay
