// Shares device memory between two processes, as lanes do with their slot. Uses the fake plug-in,
// or the one that ASSAY_DEVICE_PLUGIN names on a machine with a GPU. Prints what it measured;
// fails if the other process sees other bytes than were written.

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/fd.h"
#include "device/shared_cache.h"

namespace {

using namespace assay;

constexpr FillKey kKey{7, 8, 9};
const char* const kNamed = std::getenv("ASSAY_DEVICE_PLUGIN");

struct Order {
  DType dtype = DType::float32;
  std::uint64_t count = 0;
  std::int64_t change = -1;  // this element, to what `changed` holds; -1: none
  double changed = 0;
};

template <typename T>
bool send(int socket, const T& value) {
  return static_cast<bool>(write_all(socket, std::as_bytes(std::span(&value, 1))));
}
template <typename T>
bool receive(int socket, T& value) {
  const auto got = read_exactly(socket, std::as_writable_bytes(std::span(&value, 1)));
  return got && *got;
}

// The lane: fills memory as requested, changes one element, shares the memory.
Status serve(int socket) {
  auto device = open_device("gpu:0");
  const char opened = device ? 1 : 0;
  if (!device) std::printf("not run: %s\n", device.error().message.c_str());
  if (!send(socket, opened) || !device) return {};
  Order order;
  while (receive(socket, order)) {
    const std::uint64_t bytes = order.count * size_of(order.dtype);
    ASSAY_TRY(void* const memory, (*device)->allocate(bytes));
    ASSAY_CHECK(
        (*device)->fill(default_rule(order.dtype), kKey, order.dtype, memory, order.count, 0));
    if (order.change >= 0) {
      std::vector<std::byte> one(size_of(order.dtype));
      fill_values(std::span(&order.changed, 1), order.dtype, one);
      auto* const place =
          static_cast<std::byte*>(memory) + static_cast<std::uint64_t>(order.change) * one.size();
      ASSAY_CHECK((*device)->synchronize());
      ASSAY_CHECK((*device)->copy(place, one.data(), one.size()));
    }
    ASSAY_CHECK((*device)->synchronize());
    ASSAY_TRY(const SharedMemory shared, (*device)->share(memory, bytes));
    ASSAY_CHECK((*device)->synchronize());
    char done = 0;
    if (!send(socket, shared) || !receive(socket, done)) break;
    (*device)->release(memory);
    (*device)->end_sharing();
  }
  return {};
}

double microseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

// The slot: opens the lane's memory and compares it with its own.
Result<bool> check(int socket, SharedCache& cache, LazyDevice& lazy, const Order& order) {
  ASSAY_TRY(Device* const device, lazy.get());
  SharedMemory shared;
  if (!send(socket, order) || !receive(socket, shared)) return fail("the other process has ended");
  const std::uint64_t bytes = order.count * size_of(order.dtype);
  auto start = std::chrono::steady_clock::now();
  ASSAY_TRY(const std::byte* const lent, cache.at(shared, bytes));
  const double opening = microseconds_since(start);
  ASSAY_TRY(void* const own, device->allocate(bytes));
  ASSAY_CHECK(device->fill(default_rule(order.dtype), kKey, order.dtype, own, order.count, 0));
  ASSAY_CHECK(device->synchronize());
  ASSAY_TRY(Measurement found, device->measure(order.dtype, lent, own, order.count, {0, 0}));
  start = std::chrono::steady_clock::now();
  constexpr int kRuns = 20;
  for (int i = 0; i < kRuns; ++i) {
    ASSAY_TRY(found, device->measure(order.dtype, lent, own, order.count, {0, 0}));
  }
  const double measuring = microseconds_since(start) / kRuns;
  device->release(own);
  cache.close_large();
  const std::uint64_t differing = order.change >= 0 ? 1 : 0;
  const bool right =
      found.bit_equal == order.count - differing &&
      (differing == 0 || found.first.index == static_cast<std::uint64_t>(order.change));
  std::printf(
      "%-10s %10llu elements, %llu changed: %s; opened in %.0f us, measured in %.1f us "
      "(%.0f GB/s of both)\n",
      std::string(name(order.dtype)).c_str(), static_cast<unsigned long long>(order.count),
      static_cast<unsigned long long>(differing), right ? "as written" : "WRONG", opening,
      measuring, 2.0 * static_cast<double>(bytes) / measuring / 1e3);
  const char done = 1;
  send(socket, done);
  return right;
}

Result<int> compare(int socket) {
  char opened = 0;
  if (!receive(socket, opened) || opened == 0) {
    return kNamed != nullptr ? 1 : 77;  // one that is named counts
  }
  const auto lazy = std::make_shared<LazyDevice>("gpu:0");
  SharedCache cache(lazy);
  int wrong = 0;
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::int64, DType::complex64}) {
    for (const std::uint64_t count : {1000U, 1'048'576U, 20'000'000U}) {
      for (const std::int64_t change : {std::int64_t{-1}, static_cast<std::int64_t>(count) - 3}) {
        ASSAY_TRY(const bool right, check(socket, cache, *lazy, {dtype, count, change, 77}));
        wrong += right ? 0 : 1;
      }
    }
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main() {
  ::setenv("ASSAY_DEVICE_PLUGIN", FAKE_DEVICE, 0);
  auto ends = make_socket_pair();
  if (!ends) return 1;
  const pid_t lane = ::fork();  // before any device is opened
  if (lane == 0) {
    ends->first.reset();
    const Status served = serve(ends->second.get());
    if (!served) std::printf("lane: %s\n", served.error().message.c_str());
    std::fflush(stdout);
    ::_exit(served ? 0 : 1);
  }
  ends->second.reset();
  const Result<int> code = compare(ends->first.get());
  if (!code) std::printf("slot: %s\n", code.error().message.c_str());
  ends->first.reset();
  int status = 0;
  ::waitpid(lane, &status, 0);
  return code ? *code : 1;
}
