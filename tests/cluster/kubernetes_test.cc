// The manifest for kubectl. tests/cluster/test_kubernetes.py checks it against the schema.

#include "cluster/kubernetes.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace assay {
namespace {

using ::testing::HasSubstr;

KubernetesJob some_indexed_job() {
  KubernetesJob job;
  job.workers = {"nightly", 3, "assay", "postgresql://a@db/runs", "/var/log/assay", {"--quiet"}};
  job.image = "registry/assay:1";
  return job;
}

TEST(Kubernetes, EveryWorkerIsAPodOfOneJob) {
  KubernetesJob job = some_indexed_job();
  job.gpus = 2;
  job.secret = "db";
  const auto manifest = nlohmann::json::parse(*kubernetes_manifest(job));
  const auto& spec = manifest["spec"];
  EXPECT_EQ(spec["completionMode"], "Indexed");
  EXPECT_EQ(spec["completions"], 3);
  EXPECT_EQ(spec["parallelism"], 3);
  const auto& pod = spec["template"]["spec"];
  EXPECT_EQ(pod["restartPolicy"], "OnFailure");
  const auto& worker = pod["containers"][0];
  EXPECT_EQ(worker["command"],
            nlohmann::json({"assay", "work", "--store=postgresql://a@db/runs",
                            "--log_dir=/var/log/assay/worker-$(JOB_COMPLETION_INDEX)", "--quiet"}));
  EXPECT_EQ(worker["resources"]["limits"]["nvidia.com/gpu"], 2);
  EXPECT_EQ(worker["env"][0]["name"], "PGPASSWORD");
  EXPECT_EQ(worker["env"][0]["valueFrom"]["secretKeyRef"]["name"], "db");
}

TEST(Kubernetes, WhatIsNotAskedForIsNotThere) {
  KubernetesJob job = some_indexed_job();
  job.gpus = 0;
  const auto manifest = nlohmann::json::parse(*kubernetes_manifest(job));
  const auto& worker = manifest["spec"]["template"]["spec"]["containers"][0];
  EXPECT_FALSE(worker.contains("resources"));
  EXPECT_FALSE(worker.contains("env"));
}

TEST(Kubernetes, NothingButTheNumberIsPutIntoAWord) {
  KubernetesJob job = some_indexed_job();
  job.workers.arguments = {"--settings=$(HOME)/$(JOB_COMPLETION_INDEX)$(X)"};
  const auto manifest = nlohmann::json::parse(*kubernetes_manifest(job));
  EXPECT_EQ(manifest["spec"]["template"]["spec"]["containers"][0]["command"].back(),
            "--settings=$$(HOME)/$(JOB_COMPLETION_INDEX)$$(X)");
}

TEST(Kubernetes, NamesThatItWouldRefuseAreRefusedHere) {
  for (const char* bad : {"", "Nightly", "a_b", "-a", "a-", "a.b",
                          "a-name-that-is-longer-than-kubernetes-lets-a-job-have-it"}) {
    KubernetesJob job = some_indexed_job();
    job.workers.name = bad;
    const auto refused = kubernetes_manifest(job);
    ASSERT_FALSE(refused.has_value()) << bad;
    EXPECT_EQ(refused.error().kind, ErrorKind::usage);
    EXPECT_THAT(refused.error().message, HasSubstr("--name"));
  }
}

}  // namespace
}  // namespace assay
