#include <cstring>
#include <new>

#include "base/system_memory.h"
#include "device/device.h"
#include "measure/measure.h"

namespace assay {
namespace {

class HostDevice final : public Device {
 public:
  std::string_view name() const override { return "cpu"; }
  bool is_host() const override { return true; }

  Status fill(const FillRule& rule, const FillKey& key, DType dtype, void* out, std::uint64_t count,
              std::uint64_t first_element) override {
    assay::fill(rule, key, dtype, {static_cast<std::byte*>(out), count * size_of(dtype)},
                first_element);
    return {};
  }
  Status checksum(const void* memory, std::uint64_t bytes, std::uint64_t* result) override {
    *result = assay::checksum({static_cast<const std::byte*>(memory), bytes});
    return {};
  }
  Status copy(void* to, const void* from, std::uint64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return {};
  }
  Status synchronize() override { return {}; }
  Status mark() override { return {}; }
  Result<bool> reached() override { return true; }

  Result<Measurement> measure(DType dtype, const void* left, const void* right, std::uint64_t count,
                              Tolerance under) override {
    const std::size_t bytes = count * size_of(dtype);
    return assay::measure(dtype, {static_cast<const std::byte*>(left), bytes},
                          {static_cast<const std::byte*>(right), bytes}, under);
  }

  Result<void*> allocate(std::uint64_t bytes) override {
    void* const memory = ::operator new(bytes, std::nothrow);
    if (memory == nullptr) return fail("no memory is left");
    return memory;
  }
  void release(void* memory) override { ::operator delete(memory); }
  Result<DeviceSpace> space() override {
    ASSAY_TRY(const SystemMemory memory, system_memory());
    return DeviceSpace{memory.available, memory.total};
  }
  Status pin(void*, std::uint64_t) override { return {}; }
  void unpin(void*) override {}

  // Slots read host memory of lanes through Lane::read().
  Result<SharedMemory> share(const void*, std::uint64_t) override {
    return assay::fail("memory of the host is not shared by handles");
  }
  void end_sharing() override {}
  Result<OpenedMemory> open(const SharedMemory&) override {
    return assay::fail("memory of the host is not shared by handles");
  }
  void close(std::byte*) override {}

 private:
  static tl::unexpected<Error> fail(const char* message) { return assay::fail(message); }
};

}  // namespace

Device& host_device() {
  static HostDevice device;
  return device;
}

}  // namespace assay
