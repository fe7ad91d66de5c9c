// CUDA calls this library when CUDA_INJECTION64_PATH names it: CUPTI's activity records become GPU
// slices. A job's GPU interval goes from its first kernel's start to its last one's end; kernels
// find their job by CUPTI's external correlation.

#include <cupti.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "record/recorder.h"

namespace assay::record {
namespace {

constexpr std::size_t kBufferBytes = 2U << 20U;
constexpr std::size_t kBufferAlignment = 8;
constexpr std::size_t kMaxJobs = 1U << 14U;
constexpr std::size_t kMaxCorrelations = 1U << 20U;
constexpr auto kJobKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

struct Job {
  std::string name;
  std::int32_t micro_batch = timeline::kNone;
  std::int32_t device = timeline::kNone;
  Nanos begin = 0;  // of its GPU work; 0: none seen yet
  Nanos end = 0;
};

class CuptiRecorder : public RangeObserver {
 public:
  static CuptiRecorder& instance() {
    // CUPTI's threads call until the very end of the process: this object is never destroyed.
    static auto* const only = new CuptiRecorder;  // NOLINT(cppcoreguidelines-owning-memory)
    return *only;
  }

  bool start(Recorder& recorder) {
    recorder_ = &recorder;
    const auto clock = [] { return static_cast<std::uint64_t>(now()); };
    bool ok = cuptiActivityRegisterTimestampCallback(clock) == CUPTI_SUCCESS;
    ok = ok && cuptiActivityRegisterCallbacks(request_buffer, take_buffer) == CUPTI_SUCCESS;
    for (const CUpti_ActivityKind kind :
         {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
          CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET}) {
      ok = ok && cuptiActivityEnable(kind) == CUPTI_SUCCESS;
    }
    constexpr std::uint32_t kFlushMillis = 500;
    static_cast<void>(cuptiActivityFlushPeriod(kFlushMillis));
    if (ok) recorder.observe(this);
    return ok;
  }

  void finish() {
    static_cast<void>(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    const std::lock_guard lock(mutex_);
    while (!jobs_.empty()) write_oldest_job();
    recorder_->flush();
  }

  void range_begun(std::string_view name, std::int32_t micro_batch) override {
    std::uint64_t id = 0;
    {
      const std::lock_guard lock(mutex_);
      id = next_id_++;
      if (jobs_.size() == kMaxJobs) write_oldest_job();
      Job& job = jobs_[id];
      job.name = name;
      job.micro_batch = micro_batch;
    }
    static_cast<void>(cuptiActivityPushExternalCorrelationId(kJobKind, id));
  }

  void range_ended() override {
    std::uint64_t id = 0;
    static_cast<void>(cuptiActivityPopExternalCorrelationId(kJobKind, &id));
  }

 private:
  CuptiRecorder() = default;

  static void request_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
    // CUPTI gives the buffer back to take_buffer, which frees it.
    // NOLINTNEXTLINE(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
    *size = *buffer == nullptr ? 0 : kBufferBytes;
    *records = 0;
  }

  static void take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                          std::size_t used) {
    struct Free {
      void operator()(std::uint8_t* memory) const {
        std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)
      }
    };
    const std::unique_ptr<std::uint8_t, Free> owner(buffer);
    CUpti_Activity* record = nullptr;
    CuptiRecorder& self = instance();
    const std::lock_guard lock(self.mutex_);
    while (used > 0 && cuptiActivityGetNextRecord(buffer, used, &record) == CUPTI_SUCCESS) {
      self.take(*record);
    }
  }

  template <typename T>
  static const T& as(const CUpti_Activity& record) {
    return reinterpret_cast<const T&>(record);
  }

  void take(const CUpti_Activity& record) {
    switch (record.kind) {
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const auto& correlation = as<CUpti_ActivityExternalCorrelation>(record);
        if (correlations_.size() >= kMaxCorrelations) correlations_.clear();
        // Of nested jobs the innermost was pushed last and has the highest id.
        std::uint64_t& job = correlations_[correlation.correlationId];
        job = std::max<std::uint64_t>(job, correlation.externalId);
        break;
      }
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto& kernel = as<CUpti_ActivityKernel10>(record);
        const char* const name = kernel.name == nullptr ? "kernel" : kernel.name;
        add(name, timeline::kind_of_kernel(name), kernel.deviceId, kernel.streamId, kernel.start,
            kernel.end, kernel.correlationId);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = as<CUpti_ActivityMemcpy6>(record);
        add("Memcpy", timeline::Kind::memory, copy.deviceId, copy.streamId, copy.start, copy.end,
            copy.correlationId);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& set = as<CUpti_ActivityMemset4>(record);
        add("Memset", timeline::Kind::memory, set.deviceId, set.streamId, set.start, set.end,
            set.correlationId);
        break;
      }
      default:
        break;
    }
  }

  void add(const char* name, timeline::Kind kind, std::uint32_t device, std::uint32_t stream,
           std::uint64_t start, std::uint64_t end, std::uint32_t correlation) {
    const auto begin_time = static_cast<Nanos>(start);
    const auto end_time = static_cast<Nanos>(end);
    if (begin_time == 0 || end_time < begin_time) return;  // CUPTI says 0 where it does not know
    recorder_->add({.name = name,
                    .kind = kind,
                    .gpu = true,
                    .job = false,
                    .device = static_cast<std::int32_t>(device),
                    .lane = stream,
                    .begin = begin_time,
                    .end = end_time});
    const auto found = correlations_.find(correlation);
    if (found == correlations_.end()) return;
    const auto job = jobs_.find(found->second);
    correlations_.erase(found);
    if (job == jobs_.end()) return;
    Job& entry = job->second;
    entry.device = static_cast<std::int32_t>(device);
    entry.begin = entry.begin == 0 ? begin_time : std::min(entry.begin, begin_time);
    entry.end = std::max(entry.end, end_time);
  }

  void write_oldest_job() {
    const auto oldest = jobs_.begin();
    const Job& job = oldest->second;
    if (job.begin != 0) {
      recorder_->add({.name = job.name,
                      .kind = timeline::kind_of_job(job.name),
                      .gpu = true,
                      .job = true,
                      .device = job.device,
                      .lane = 0,
                      .begin = job.begin,
                      .end = job.end,
                      .micro_batch = job.micro_batch});
    }
    jobs_.erase(oldest);
  }

  std::mutex mutex_;
  Recorder* recorder_ = nullptr;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Job> jobs_;  // by id, which is by time
  std::unordered_map<std::uint32_t, std::uint64_t> correlations_;
};

}  // namespace
}  // namespace assay::record

extern "C" __attribute__((visibility("default"))) int InitializeInjection();

int InitializeInjection() {
  using namespace assay::record;
  Recorder* const recorder = Recorder::instance();
  if (recorder == nullptr || !CuptiRecorder::instance().start(*recorder)) return 0;
  // Registered after the recorder was made, so it runs before the recorder goes.
  std::atexit([] { CuptiRecorder::instance().finish(); });
  return 1;
}
