#pragma once

// Traces of ranks made event by event, and what the analysis makes of them.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support.h"
#include "timeline/analysis/analysis.h"
#include "timeline/analysis/insights.h"
#include "timeline/analysis/job_names.h"
#include "timeline/load.h"

namespace assay::timeline::test {

// Events of one rank, as PyTorch's profiler writes them; times in microseconds.
class RankTrace {
 public:
  explicit RankTrace(int rank, int world = 2, const std::string& host = "node") {
    text_ = fmt::format(
        R"({{"schemaVersion":1,"host_name":"{3}","distributedInfo":{{"backend":"nccl","rank":{0},"world_size":{1}}},"traceEvents":[{{"ph":"M","name":"process_name","pid":{2},"args":{{"name":"python"}}}})",
        rank, world, 100 + rank, host);
    pid_ = 100 + rank;
    device_ = rank;
  }
  RankTrace& range(const std::string& name, int begin, int end, int thread = 0) {
    text_ += fmt::format(
        R"(,{{"ph":"X","cat":"user_annotation","name":"{}","pid":{},"tid":{},"ts":{},"dur":{}}})",
        name, pid_, pid_ + thread, begin, end - begin);
    return *this;
  }
  // A kernel, launched at `launched` by a thread.
  RankTrace& kernel(const std::string& name, int launched, int begin, int end, int thread = 0,
                    const std::string& args = "", int stream = 7) {
    ++correlation_;
    text_ += fmt::format(
        R"(,{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":{},"tid":{},"ts":{},"dur":1,"args":{{"correlation":{}}}}})",
        pid_, pid_ + thread, launched, correlation_);
    text_ += fmt::format(
        R"(,{{"ph":"X","cat":"kernel","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"device":{},"stream":{},"correlation":{}{}}}}})",
        name, device_, stream, begin, end - begin, device_, stream, correlation_, args);
    return *this;
  }
  // Kernels of one launched graph, one after the other.
  RankTrace& graph(std::initializer_list<const char*> names, int launched, int begin, int took) {
    ++correlation_;
    text_ += fmt::format(
        R"(,{{"ph":"X","cat":"cuda_runtime","name":"cudaGraphLaunch","pid":{0},"tid":{0},"ts":{1},"dur":1,"args":{{"correlation":{2}}}}})",
        pid_, launched, correlation_);
    for (const char* name : names) {
      text_ += fmt::format(
          R"(,{{"ph":"X","cat":"kernel","name":"{}","pid":{},"tid":7,"ts":{},"dur":{},"args":{{"device":{},"stream":7,"correlation":{}}}}})",
          name, device_, begin, took, device_, correlation_);
      begin += took;
    }
    return *this;
  }
  // A copy to the device, launched by the runtime call of that correlation.
  RankTrace& copy(int begin, int took, int correlation) {
    text_ += fmt::format(
        R"(,{{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","pid":{},"tid":7,"ts":{},"dur":{},"args":{{"device":{},"stream":7,"correlation":{},"bytes":4096}}}})",
        device_, begin, took, device_, correlation);
    return *this;
  }
  RankTrace& collective(const std::string& name, int begin, int end, int elements,
                        const std::string& ranks = "[0, 1]") {
    return kernel(
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", begin - 1,
        begin, end, 0,
        fmt::format(
            R"(,"Collective name":"{}","In msg nelems":{},"Out msg nelems":{},"Group size":2,"dtype":"Float","Process Group Name":"0","Process Group Description":"default_pg","Process Group Ranks":"{}")",
            name, elements, elements, ranks));
  }
  // A send to, or a receive from, a rank of a process group of four.
  RankTrace& transfer(const std::string& name, int peer, int begin, int end, int launched = -1,
                      const std::string& ranks = "[0, 1, 2, 3]") {
    return kernel(
        "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
        launched < 0 ? begin - 1 : launched, begin, end, 0,
        fmt::format(
            R"(,"Collective name":"{}","In msg nelems":1000,"Out msg nelems":1000,"Group size":4,"dtype":"Float","Process Group Name":"pp","Process Group Description":"mesh_pp","Process Group Ranks":"{}","{} Rank":{})",
            name, ranks, name == "send" ? "Dst" : "Src", peer),
        22);
  }
  // Any complete event of the host's thread.
  RankTrace& event(const std::string& fields) {
    text_ += fmt::format(R"(,{{"ph":"X","pid":{},"tid":{},{}}})", pid_, pid_, fields);
    return *this;
  }
  RankTrace& memory(int time, long allocated, long reserved) {
    text_ += fmt::format(
        R"(,{{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":{},"tid":{},"ts":{},"args":{{"Device Type":1,"Device Id":{},"Bytes":4,"Total Allocated":{},"Total Reserved":{}}}}})",
        pid_, pid_, time, device_, allocated, reserved);
    return *this;
  }
  // The name of its GPU.
  RankTrace& device(const std::string& name) {
    end_ = fmt::format(R"(],"deviceProperties":[{{"id":0,"name":"{}"}}]}})", name);
    return *this;
  }
  std::string text() const { return text_ + end_; }

 private:
  std::string text_;
  std::string end_ = "]}";
  int pid_ = 0;
  int device_ = 0;
  int correlation_ = 0;
};

class TheInsights : public testing::Test {
 protected:
  void load(std::initializer_list<RankTrace> ranks, const JobNames& names = {}) {
    int number = 0;
    std::vector<fs::path> paths;
    for (const RankTrace& rank : ranks) {
      paths.push_back(write(folder_ / fmt::format("r{}.json", number++), rank.text()));
    }
    LoadOptions options;
    options.import.analysis = true;
    options.job_names = names;
    auto trace = load_traces(paths, options);
    ASSERT_TRUE(trace) << trace.error().message;
    use(std::move(*trace));
  }
  void use(Trace trace) {
    trace_ = std::move(trace);
    analysis_ = analyse(trace_);
    insights_ = insights_of(trace_, analysis_);
  }
  TempFolder folder_;
  Trace trace_;
  Analysis analysis_;
  Insights insights_;
};

}  // namespace assay::timeline::test
