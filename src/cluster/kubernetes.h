#pragma once

// Workers as an Indexed Job of Kubernetes.

#include <string>

#include "base/result.h"
#include "cluster/workers.h"

namespace assay {

struct KubernetesJob {
  Workers workers;
  std::string image;
  std::uint32_t gpus = 1;  // of each worker
  std::string secret;      // whose key `password` is that of the database; empty: none
};

// A manifest in JSON, for kubectl apply. The Job is done when every worker has found nothing left
// to do; a worker whose node is lost or drained is started again.
Result<std::string> kubernetes_manifest(const KubernetesJob& job);

}  // namespace assay
