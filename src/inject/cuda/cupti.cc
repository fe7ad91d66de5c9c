// CUDA loads this library if CUDA_INJECTION64_PATH names it. CUPTI's activity records become GPU
// slices, and its callbacks show which range launched which work. CUPTI allows one subscriber: this
// library. A profiler that the program starts itself (PyTorch's) is therefore refused with an
// error, instead of taking the records away silently.

#include <cupti.h>
#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "inject/cuda/cupti_library.h"
#include "inject/recorder.h"

namespace assay::inject {
namespace {

constexpr std::size_t kBufferBytes = 4U << 20U;
constexpr std::size_t kBufferAlignment = 8;
constexpr std::size_t kMaxNames = 1U << 16U;
constexpr std::array kKinds{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                            CUPTI_ACTIVITY_KIND_MEMSET};

// True for driver calls that put work on a GPU.
bool launches(std::string_view call) {
  constexpr std::array<std::string_view, 4> kPrefixes{"cuLaunch", "cuGraphLaunch", "cuMemcpy",
                                                      "cuMemset"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [call](std::string_view prefix) { return call.starts_with(prefix); });
}

// True for those that start a kernel.
bool starts_kernels(std::string_view call) {
  return call.starts_with("cuLaunchKernel") || call.starts_with("cuGraphLaunch");
}

// The machine's numbers of CUDA's devices: with CUDA_VISIBLE_DEVICES=2,3 device 0 is the machine's
// 2.
std::vector<std::int32_t> visible_devices() {
  std::vector<std::int32_t> devices;
  const char* const text = std::getenv("CUDA_VISIBLE_DEVICES");
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    std::int32_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc()) return {};  // the variable has UUIDs
    devices.push_back(number);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (rest.starts_with(',')) rest.remove_prefix(1);
  }
  return devices;
}

// Lets lookups take a string_view without a copy.
struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const {
    return std::hash<std::string_view>()(name);
  }
};

class CuptiRecorder {
 public:
  static CuptiRecorder& instance() {
    // Never destroyed, because CUPTI's threads call it until the process ends.
    static auto* const only = new CuptiRecorder;  // NOLINT(cppcoreguidelines-owning-memory)
    return *only;
  }

  // Returns "", or the reason why no GPU work will be recorded.
  std::string start(Recorder& recorder) {
    recorder_ = &recorder;
    if (std::string missing = cupti_.load(); !missing.empty()) return missing;
    const auto clock = [] { return static_cast<std::uint64_t>(now()); };
    const CUptiResult subscribed = cupti_.subscribe(&subscriber_, launching, nullptr);
    if (subscribed == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
      return "another profiler holds CUPTI";
    }
    if (subscribed != CUPTI_SUCCESS || cupti_.register_clock(clock) != CUPTI_SUCCESS ||
        cupti_.register_buffers(request_buffer, take_buffer) != CUPTI_SUCCESS) {
      return "CUPTI refused (error " + std::to_string(subscribed) + ")";
    }
    constexpr std::uint32_t kFlushMillis = 500;
    static_cast<void>(cupti_.flush_period(kFlushMillis));
    find_launching_calls();
    recorder.on_change([this] { switch_on_or_off(); });
    recorder.on_deliver([this](bool all) {
      constexpr auto kAll = static_cast<std::uint32_t>(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
      static_cast<void>(cupti_.flush_all(all ? kAll : 0U));
      write_launches();
    });
    if (recorder.options().by_time()) std::thread([this] { keep_time(); }).detach();
    return "";
  }

  void finish() {
    static_cast<void>(cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    std::size_t dropped = 0;
    if (cupti_.dropped(nullptr, 0, &dropped) == CUPTI_SUCCESS && dropped > 0) {
      recorder_->add_lost(dropped);
    }
    write_launches();
    recorder_->flush();
  }

 private:
  CuptiRecorder() = default;

  // Disables CUPTI outside of the recording window, so that it costs nothing there.
  void switch_on_or_off() {
    const std::lock_guard lock(switch_mutex_);
    const bool wanted = recorder_->active();
    if (wanted == on_) return;
    on_ = wanted;
    for (const CUpti_ActivityKind kind : kKinds) {
      const CUptiResult result = wanted ? cupti_.enable(kind) : cupti_.disable(kind);
      if (result != CUPTI_SUCCESS) {
        recorder_->add_note("CUPTI refused activity " + std::to_string(kind) + " (error " +
                            std::to_string(result) + ")");
      }
    }
    for (const CUpti_CallbackId call : launching_calls_) {
      static_cast<void>(
          cupti_.enable_callback(wanted ? 1 : 0, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, call));
    }
  }

  void find_launching_calls() {
    for (int call = 1; call < CUPTI_DRIVER_TRACE_CBID_SIZE; ++call) {
      const char* name = nullptr;
      const auto id = static_cast<CUpti_CallbackId>(call);
      if (cupti_.callback_name(CUPTI_CB_DOMAIN_DRIVER_API, id, &name) != CUPTI_SUCCESS) continue;
      if (name == nullptr || !launches(name)) continue;
      kernels_[id] = starts_kernels(name);
      launching_calls_.push_back(id);
    }
  }

  void keep_time() {
    const RecorderOptions& options = recorder_->options();
    for (const Nanos until : {options.first_time, options.end_time}) {
      if (until == std::numeric_limits<Nanos>::max()) continue;
      while (recorder_->age() < until) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(until - recorder_->age()));
      }
      switch_on_or_off();
    }
  }

  static void launching(void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data) {
    const auto* const call = static_cast<const CUpti_CallbackData*>(data);
    if (call->callbackSite != CUPTI_API_ENTER) return;
    instance().launched(*call, instance().kernels_[id]);
  }

  void launched(const CUpti_CallbackData& call, bool kernel) {
    const bool watched = kernel && recorder_->watches_hangs();
    if (watched) recorder_->kernel_launched(call.correlationId);
    const std::uint64_t range = recorder_->current_range();
    bool collective = false;
    {
      const std::lock_guard lock(launch_mutex_);
      collective = watched && call.symbolName != nullptr && communicates(call.symbolName);
      if (range != 0) add_launch(range, call.correlationId);
    }
    if (collective) {
      recorder_->collective_launched(call.correlationId, named(call.symbolName).text);
    }
  }

  void add_launch(std::uint64_t range, std::uint32_t correlation) {
    if (range != launching_range_ || launches_.size() == timeline::recording::kMaxLaunches) {
      write_launches_locked();
      launching_range_ = range;
    }
    launches_.push_back(correlation);
  }

  // Cached by the address of the name, because there are millions of kernel launches.
  bool communicates(const char* kernel) {
    const auto [known, is_new] = communicating_.try_emplace(kernel, false);
    if (is_new) {
      known->second = timeline::kind_of_kernel(kernel) == timeline::Kind::communication;
    }
    return known->second;
  }

  void write_launches() {
    const std::lock_guard lock(launch_mutex_);
    write_launches_locked();
  }
  void write_launches_locked() {
    if (!launches_.empty()) recorder_->add_launches(launching_range_, launches_);
    launches_.clear();
  }

  static void request_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
    // CUPTI returns the buffer to take_buffer, which frees it.
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
    self.write_launches();
    const std::lock_guard lock(self.take_mutex_);
    while (used > 0 && self.cupti_.next_record(buffer, used, &record) == CUPTI_SUCCESS) {
      self.take(*record);
    }
  }

  template <typename T>
  static const T& as(const CUpti_Activity& record) {
    return reinterpret_cast<const T&>(record);
  }

  void take(const CUpti_Activity& record) {
    switch (record.kind) {
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto& work = as<CUpti_ActivityKernel10>(record);
        const KernelName kernel = named(work.name == nullptr ? "kernel" : work.name);
        add(kernel.text, kernel.kind, work);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        add("Memcpy", timeline::Kind::memory, as<CUpti_ActivityMemcpy6>(record));
        break;
      case CUPTI_ACTIVITY_KIND_MEMSET:
        add("Memset", timeline::Kind::memory, as<CUpti_ActivityMemset4>(record));
        break;
      default:
        break;
    }
  }

  template <typename T>
  void add(std::string_view name, timeline::Kind kind, const T& work) {
    const auto begin = static_cast<Nanos>(work.start);
    const auto end = static_cast<Nanos>(work.end);
    if (begin == 0 || end < begin) return;  // CUPTI reports unknown times as 0
    auto device = static_cast<std::int32_t>(work.deviceId);
    if (work.deviceId < visible_.size()) device = visible_[work.deviceId];
    recorder_->add({.name = name,
                    .kind = kind,
                    .gpu = true,
                    .job = false,
                    .device = device,
                    .lane = work.streamId,
                    .begin = begin,
                    .end = end,
                    .id = work.correlationId});
  }

  struct KernelName {
    std::string text;  // the mangled name, "_ZN2at6native…"
    timeline::Kind kind = timeline::Kind::compute;
  };
  // Demangles each name once, because there are millions of kernels.
  KernelName named(std::string_view mangled) {
    const std::lock_guard lock(names_mutex_);
    if (const auto known = names_.find(mangled); known != names_.end()) return known->second;
    if (names_.size() == kMaxNames) names_.clear();
    int status = 0;
    struct Free {
      void operator()(char* text) const {
        std::free(text);  // NOLINT(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)
      }
    };
    const std::string key(mangled);
    const std::unique_ptr<char, Free> text(
        abi::__cxa_demangle(key.c_str(), nullptr, nullptr, &status));
    KernelName name{text == nullptr ? key : std::string(text.get()), {}};
    name.kind = timeline::kind_of_kernel(name.text);
    return names_.emplace(key, std::move(name)).first->second;
  }

  CuptiLibrary cupti_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  Recorder* recorder_ = nullptr;
  const std::vector<std::int32_t> visible_ = visible_devices();

  std::mutex switch_mutex_;
  bool on_ = false;

  std::mutex launch_mutex_;
  std::uint64_t launching_range_ = 0;
  std::vector<std::uint32_t> launches_;                  // of that range
  std::unordered_map<const void*, bool> communicating_;  // by kernel name

  std::vector<CUpti_CallbackId> launching_calls_;
  std::array<bool, CUPTI_DRIVER_TRACE_CBID_SIZE> kernels_{};  // callback ids that start kernels

  std::mutex take_mutex_;
  std::mutex names_mutex_;
  std::unordered_map<std::string, KernelName, NameHash, std::equal_to<>> names_;
};

}  // namespace
}  // namespace assay::inject

extern "C" __attribute__((visibility("default"))) int InitializeInjection();

int InitializeInjection() {
  using namespace assay::inject;
  Recorder* const recorder = Recorder::instance();
  if (recorder == nullptr) return 0;
  if (const std::string problem = CuptiRecorder::instance().start(*recorder); !problem.empty()) {
    recorder->add_note("no GPU work recorded: " + problem);
    return 0;
  }
  // Registered after the recorder's creation, so it runs before the recorder's end.
  std::atexit([] { CuptiRecorder::instance().finish(); });
  return 1;
}
