// A device plug-in whose two GPUs are host memory, for tests on machines without a GPU. It is as
// asynchronous as a real one: copies to pinned memory and checksums complete in synchronize(), or
// at the second reached() after their mark. After a fault every call fails.
//
// It shares memory through copies in anonymous files, which another process opens by their path in
// /proc. Variables of the environment select faults: FAKE_DEVICE_DRIVER (it needs this newer
// driver), FAKE_DEVICE_BROKEN (no GPU can be opened; 1, or the name of the program that cannot),
// FAKE_DEVICE_NO_SHARING, FAKE_DEVICE_ONE_MAPPING (a new mapping has the address of the last one).

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/plugin_abi.h"
#include "measure/measure.h"

namespace {

constexpr int kBroken = 1;
constexpr int kFault = 2;
constexpr int kNoMemory = 3;
constexpr int kStraddles = 4;
constexpr int kMapped = 5;
constexpr int kGpus = 2;

bool faulty = false;

struct Handle {
  pid_t pid = 0;
  int file = -1;
};

struct File {
  int fd = -1;
  void* memory = nullptr;
  std::uint64_t bytes = 0;
};

}  // namespace

struct AssayDevice {
  std::vector<std::function<void()>> late;
  std::size_t marked = 0;  // the first of them
  int asked = 1;           // since the mark
  std::vector<File> shared;
  std::map<std::byte*, std::uint64_t> opened;
  std::uint64_t shares = 0;
  const std::byte* pinned = nullptr;
  std::uint64_t pinned_bytes = 0;
};

namespace {

int synchronize(AssayDevice* device) {
  if (faulty) return kFault;
  for (const auto& work : device->late) work();
  device->late.clear();
  device->marked = 0;
  device->asked = 1;
  return 0;
}

int mark(AssayDevice* device) {
  if (faulty) return kFault;
  device->marked = device->late.size();
  device->asked = 0;
  return 0;
}

int reached(AssayDevice* device, bool* yes) {
  if (faulty) return kFault;
  *yes = ++device->asked > 1;
  if (!*yes) return 0;
  const auto end = device->late.begin() + static_cast<std::ptrdiff_t>(device->marked);
  for (auto work = device->late.begin(); work != end; ++work) (*work)();
  device->late.erase(device->late.begin(), end);
  device->marked = 0;
  return 0;
}

int copy(AssayDevice* device, void* to, const void* from, std::uint64_t bytes) {
  // As in CUDA, an allocation is pinned as a whole.
  const auto* const target = static_cast<const std::byte*>(to);
  const auto* const end = device->pinned + device->pinned_bytes;
  if (target >= device->pinned && target < end && target + bytes > end) return kStraddles;
  if (target < device->pinned || target >= end) {  // at once, and so are copies to a GPU for it
    if (bytes > 0) std::memcpy(to, from, bytes);
    return 0;
  }
  const auto* const begin = static_cast<const std::byte*>(from);
  device->late.push_back([to, seen = std::vector<std::byte>(begin, begin + bytes)] {
    if (!seen.empty()) std::memcpy(to, seen.data(), seen.size());
  });
  return 0;
}

int share(AssayDevice* device, const void* memory, std::uint64_t bytes,
          assay::SharedMemory* shared) {
  if (std::getenv("FAKE_DEVICE_NO_SHARING") != nullptr) return kBroken;
  File file;
  file.fd = ::memfd_create("fake-device", MFD_CLOEXEC);
  file.bytes = bytes;
  if (file.fd < 0 || ::ftruncate(file.fd, static_cast<off_t>(bytes)) != 0) return kNoMemory;
  file.memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
  if (file.memory == MAP_FAILED) return kNoMemory;
  std::memcpy(file.memory, memory, bytes);
  device->shared.push_back(file);
  const Handle handle{::getpid(), file.fd};
  std::memcpy(shared->handle.data(), &handle, sizeof handle);
  shared->offset = 0;
  shared->allocation_bytes = bytes;
  shared->allocation = ++device->shares;
  return 0;
}

void end_sharing(AssayDevice* device) {
  for (const File& file : device->shared) {
    ::munmap(file.memory, file.bytes);
    ::close(file.fd);
  }
  device->shared.clear();
}

int open_shared(AssayDevice* device, const assay::SharedMemory* shared,
                assay::OpenedMemory* opened) {
  Handle handle;
  std::memcpy(&handle, shared->handle.data(), sizeof handle);
  const std::string path =
      "/proc/" + std::to_string(handle.pid) + "/fd/" + std::to_string(handle.file);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return kNoMemory;
  if (std::getenv("FAKE_DEVICE_ONE_MAPPING") != nullptr && !device->opened.empty()) {
    ::close(fd);
    return kMapped;
  }
  const off_t bytes = ::lseek(fd, 0, SEEK_END);
  void* const memory =
      ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) return kNoMemory;
  *opened = {static_cast<std::byte*>(memory), static_cast<std::uint64_t>(bytes)};
  device->opened[opened->base] = opened->bytes;
  return 0;
}

std::uint32_t needed_driver() {
  const char* said = std::getenv("FAKE_DEVICE_DRIVER");
  return said != nullptr ? static_cast<std::uint32_t>(std::strtoul(said, nullptr, 10)) : 0;
}

bool broken_here() {
  const char* said = std::getenv("FAKE_DEVICE_BROKEN");
  if (said == nullptr) return false;
  return std::string_view(said) == "1" || std::string_view(said) == program_invocation_short_name;
}

std::uint32_t told_abi() {
  const char* said = std::getenv("FAKE_DEVICE_ABI");
  return said != nullptr ? static_cast<std::uint32_t>(std::strtoul(said, nullptr, 10))
                         : assay::kDevicePluginAbi;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// Simulates an illegal access of a kernel, which breaks the device for the whole process.
EXPORT void assay_fake_fault() { faulty = true; }

EXPORT const AssayDevicePlugin* assay_device_plugin() {
  static const AssayDevicePlugin plugin = {
      .abi = told_abi(),
      .fill_version = assay::kFillVersion,
      .measurement_version = assay::kMeasurementVersion,
      .measurement_bytes = sizeof(assay::Measurement),
      .needs_driver = needed_driver(),
      .name = "fake 1.0",
      .describe =
          [](int code) {
            return code == kBroken  ? "no such GPU"
                   : code == kFault ? "a pretended fault"
                                    : "no memory";
          },
      .open = [](int number, AssayDevice** device) -> int {
        if (number >= kGpus || broken_here()) return kBroken;
        if (const char* file = std::getenv("FAKE_TELLS_OF_OPENING"); file != nullptr) {
          std::ofstream(file, std::ios::app) << program_invocation_short_name << "\n";
        }
        *device = std::make_unique<AssayDevice>().release();
        return 0;
      },
      .close = [](AssayDevice* device) { std::unique_ptr<AssayDevice>(device).reset(); },
      .fill = [](AssayDevice*, const assay::FillRule* rule, const assay::FillKey* key,
                 std::uint8_t dtype, void* out, std::uint64_t count, std::uint64_t first) -> int {
        const auto type = static_cast<assay::DType>(dtype);
        assay::fill(*rule, *key, type, {static_cast<std::byte*>(out), count * assay::size_of(type)},
                    first);
        return 0;
      },
      .checksum = [](AssayDevice* device, const void* memory, std::uint64_t bytes,
                     std::uint64_t* result) -> int {
        const std::uint64_t sum = assay::checksum({static_cast<const std::byte*>(memory), bytes});
        device->late.push_back([result, sum] { *result = sum; });
        return 0;
      },
      .copy = copy,
      .synchronize = synchronize,
      .mark = mark,
      .reached = reached,
      .measure = [](AssayDevice*, std::uint8_t dtype, const void* left, const void* right,
                    std::uint64_t count, const assay::Tolerance* under,
                    assay::Measurement* result) -> int {
        const auto type = static_cast<assay::DType>(dtype);
        const std::size_t bytes = count * assay::size_of(type);
        if (const char* file = std::getenv("FAKE_TELLS_OF_MEASURING"); file != nullptr) {
          std::ofstream(file, std::ios::app) << count << "\n";
        }
        *result = assay::measure(type, {static_cast<const std::byte*>(left), bytes},
                                 {static_cast<const std::byte*>(right), bytes}, *under);
        return 0;
      },
      .allocate = [](AssayDevice*, std::uint64_t bytes, void** memory) -> int {
        *memory = std::malloc(bytes);
        return *memory != nullptr ? 0 : kNoMemory;
      },
      .release = [](AssayDevice*, void* memory) { std::free(memory); },
      .space = [](AssayDevice*, assay::DeviceSpace* space) -> int {
        *space = {std::uint64_t{8} << 30, std::uint64_t{10} << 30};
        return 0;
      },
      .pin = [](AssayDevice* device, void* host, std::uint64_t bytes) -> int {
        device->pinned = static_cast<const std::byte*>(host);
        device->pinned_bytes = bytes;
        return 0;
      },
      .unpin = [](AssayDevice*, void*) {},
      .share = share,
      .end_sharing = end_sharing,
      .open_shared = open_shared,
      .close_shared =
          [](AssayDevice* device, std::byte* base) {
            ::munmap(base, device->opened[base]);
            device->opened.erase(base);
          },
  };
  return &plugin;
}
