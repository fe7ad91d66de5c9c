#pragma once

// A small suite of the launching kind: N1C2/….sh around benchmark_common/run_benchmark.sh. Written
// for these tests after the way PaddleFleetX and PaddleNLP write theirs.

#include <string>

#include "material.h"

namespace assay::chain {

// The parts of run_benchmark.sh that tests vary; the words are bash.
struct ToyTraining {
  std::string train = "echo 'loss: 0.5 ips: 100 tokens/s' > ${log_file}";
  std::string keyword = "ips:";
  std::string skip_steps = "1";
  std::string model_mode = "5";
  std::string monitor;  // silence after which the script itself ends the training
};

inline std::string toy_run_benchmark(const ToyTraining& training) {
  return R"(#!/usr/bin/env bash
# Usage: bash run_benchmark.sh ${model_item} ${fp_item} ${run_mode} ${device_num}
function _set_params(){
    model_item=${1:-"model_item"}   # (needed)
    fp_item=${2:-"fp32"}
    run_mode=${3:-"DP"}
    device_num=${4:-"N1C1"}
    bs_item=${5:-"8"}
    base_batch_size=$bs_item
    model_repo="ToyRepo"            # the suite
    speed_unit="tokens/s"
    skip_steps=)" +
         training.skip_steps + R"(
    keyword=")" +
         training.keyword + R"("
    convergence_key="loss:"
    model_mode=)" +
         training.model_mode + R"(
    profiling=${PROFILING:-"false"}
    model_name=${model_item}_bs${bs_item}_${fp_item}_${run_mode}
    device=${CUDA_VISIBLE_DEVICES//,/ }
    arr=(${device})
    run_log_path=${TRAIN_LOG_DIR:-$(pwd)}
    train_log_file=${run_log_path}/${model_repo}_${model_name}_${device_num}_log
    profiling_log_file=${PROFILING_LOG_DIR:-$(pwd)}/${model_repo}_${model_name}_${device_num}_profiling
    mkdir -p $(dirname ${train_log_file})
}
)" + training.monitor +
         R"(
function _train(){
    log_file=${train_log_file}
    cd ../
    )" + training.train +
         R"(
}
source ${BENCHMARK_ROOT}/scripts/run_model.sh
_set_params $@
_run
)";
}

// A checkout with the suite; launches are started in its folder.
class ToySuite {
 public:
  explicit ToySuite(const ToyTraining& training = {}) {
    put(scratch_.path() / "tests/test_tipc/toy/benchmark_common/run_benchmark.sh",
        toy_run_benchmark(training));
    put(scratch_.path() / "tests/test_tipc/toy/benchmark_common/prepare.sh", "echo prepared\n");
  }

  const std::filesystem::path& path() const { return scratch_.path(); }

  // Writes a launching script; returns its path from the checkout.
  std::string launch(const std::string& text, const std::string& folder = "N1C1") const {
    const std::string path = "tests/test_tipc/toy/" + folder + "/toy_bs8_fp16_DP.sh";
    put(scratch_.path() / path, text);
    return path;
  }

 private:
  Scratch scratch_;
};

// The usual launching script: its variables as arguments.
inline constexpr const char* kToyLaunch = R"(# A licence.
model_item=toy
fp_item=fp16
run_mode=DP
device_num=N1C1
bs_item=8

cd ./tests
bash ./test_tipc/toy/benchmark_common/prepare.sh
# run
bash ./test_tipc/toy/benchmark_common/run_benchmark.sh ${model_item} ${fp_item} ${run_mode} ${device_num} \
${bs_item} 2>&1;
)";

}  // namespace assay::chain
