// Devices as lanes and slots use them: the host, and GPUs through the plug-in interface.

#include "device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "device/plugin.h"
#include "device/shared_cache.h"
#include "measure/measure.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

const FillRule kRule = default_rule(DType::float32);
constexpr FillKey kKey{1, 2, 3};
// The plug-in under test. Tests of assay's own side of the interface use the fake one.
const char* const kNamed = std::getenv("ASSAY_DEVICE_PLUGIN");

class Devices : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ::setenv("ASSAY_DEVICE_PLUGIN", kNamed != nullptr ? kNamed : FAKE_DEVICE, 1);
    auto opened = open_device(GetParam());
    if (!opened && kNamed != nullptr && GetParam() == std::string("gpu:1")) {
      GTEST_SKIP() << "the plug-in has one device: " << opened.error().message;
    }
    ASSERT_TRUE(opened) << opened.error().message;
    device_ = *opened;
  }
  std::shared_ptr<Device> device_;
};

TEST_P(Devices, FillSumUpAndMeasureAsTheHostDoes) {
  constexpr std::uint64_t kCount = 5000;
  for (const DTypeInfo& type : kDTypes) {
    const std::uint64_t bytes = kCount * type.size;
    const FillRule rule = default_rule(type.dtype);
    void* const left = *device_->allocate(bytes);
    void* const right = *device_->allocate(bytes);
    std::vector<std::byte> expected(bytes);
    fill(rule, kKey, type.dtype, expected, 10);
    ASSERT_TRUE(device_->fill(rule, kKey, type.dtype, left, kCount, 10));
    std::vector<std::byte> found(bytes);
    std::uint64_t sum = 0;
    ASSERT_TRUE(device_->copy(found.data(), left, bytes));
    ASSERT_TRUE(device_->checksum(left, bytes, &sum));
    ASSERT_TRUE(device_->synchronize());
    EXPECT_EQ(found, expected) << type.name;
    EXPECT_EQ(sum, checksum(expected)) << type.name;

    std::vector<std::byte> other = expected;
    other[100 * type.size] ^= std::byte{1};
    ASSERT_TRUE(device_->copy(right, other.data(), bytes));
    ASSERT_TRUE(device_->synchronize());
    const auto measured = device_->measure(type.dtype, left, right, kCount, {1e-2, 1e-2});
    ASSERT_TRUE(measured) << type.name;
    EXPECT_EQ(*measured, measure(type.dtype, expected, other, {1e-2, 1e-2})) << type.name;
    EXPECT_EQ(measured->bit_equal, kCount - 1) << type.name;
    device_->release(left);
    device_->release(right);
  }
}

TEST_P(Devices, SayWithoutWaitingHowFarTheyHaveCome) {
  constexpr std::uint64_t kCount = 100;
  void* const memory = *device_->allocate(kCount * 4);
  std::vector<std::byte> expected(kCount * 4);
  fill(kRule, kKey, DType::float32, expected, 0);
  ASSERT_TRUE(device_->fill(kRule, kKey, DType::float32, memory, kCount, 0));
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  ASSERT_TRUE(device_->checksum(memory, expected.size(), &before));
  ASSERT_TRUE(device_->mark());
  ASSERT_TRUE(device_->checksum(memory, expected.size(), &after));
  while (!*device_->reached()) {
  }
  EXPECT_EQ(before, checksum(expected));
  ASSERT_TRUE(device_->mark());
  ASSERT_TRUE(device_->synchronize());
  EXPECT_EQ(after, checksum(expected));
  EXPECT_TRUE(*device_->reached());
  device_->release(memory);
}

TEST_P(Devices, HaveANameAndRoom) {
  EXPECT_EQ(device_->name(), GetParam());
  EXPECT_EQ(device_->is_host(), device_->name() == "cpu");
  const auto space = device_->space();
  ASSERT_TRUE(space);
  EXPECT_GT(space->free, 0U);
  EXPECT_GE(space->total, space->free);
}

INSTANTIATE_TEST_SUITE_P(All, Devices, ::testing::Values("cpu", "gpu:0", "gpu:1"));

TEST(DeviceNames, AreCpuAndNumberedGpus) {
  EXPECT_EQ(gpu_number("gpu:12"), 12);
  for (const char* name : {"cpu", "gpu", "gpu:", "gpu:-1", "gpu:1x", "cuda:0"}) {
    EXPECT_EQ(gpu_number(name), std::nullopt) << name;
  }
  EXPECT_FALSE(open_device("gpu:x"));
  const auto through_host = open_device("npu:0");
  ASSERT_TRUE(through_host);
  EXPECT_TRUE((*through_host)->is_host());
}

TEST(DevicePlugin, ThatIsMissingOrForeignIsOneLine) {
  ::unsetenv("ASSAY_DEVICE_PLUGIN");
  const auto missing = load_device_plugin("/no/such/plugin.so");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("built without CUDA"));
  const auto foreign = load_device_plugin("/proc/self/exe");
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().message, HasSubstr("cannot be loaded"));
}

// In a child process, because a plug-in stays loaded.
void in_child(const char* variable, const char* value, const std::function<bool()>& holds) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::setenv(variable, value, 1);
    ::_exit(holds() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << variable << "=" << value;
}

class FreshPlugin : public ::testing::Test {
 protected:
  // A copy of the file has its own table, even if the original is loaded already.
  std::filesystem::path copy_ = std::filesystem::temp_directory_path() /
                                ("assay-fake-device-" + std::to_string(::getpid()) + ".so");
  void SetUp() override {
    std::filesystem::copy_file(FAKE_DEVICE, copy_,
                               std::filesystem::copy_options::overwrite_existing);
  }
  void TearDown() override { std::filesystem::remove(copy_); }
};

TEST_F(FreshPlugin, OfAnotherVersionIsRefused) {
  in_child("FAKE_DEVICE_ABI", "99", [&] {
    const auto plugin = load_device_plugin(copy_);
    return !plugin && plugin.error().message.find("another version of assay") != std::string::npos;
  });
}

TEST_F(FreshPlugin, SaysWhyAGpuCannotBeOpened) {
  in_child("FAKE_DEVICE_BROKEN", "1", [&] {
    const auto plugin = load_device_plugin(copy_);
    const auto device = open_plugin_device(**plugin, 0);
    return !device && device.error().message.find("gpu:0 cannot be opened: no such GPU") == 0;
  });
}

// A lane shares memory and a slot opens it. Here two devices of one process play both roles.
class Sharing : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("ASSAY_DEVICE_PLUGIN", FAKE_DEVICE, 1);
    lane_ = *open_device("gpu:0");
    slot_ = std::make_unique<SharedCache>(std::make_shared<LazyDevice>("gpu:1"));
  }
  SharedMemory share(std::uint64_t bytes, std::uint8_t value) {
    const std::vector<std::uint8_t> memory(bytes, value);
    return *lane_->share(memory.data(), bytes);
  }
  std::shared_ptr<Device> lane_;
  std::unique_ptr<SharedCache> slot_;
};

TEST_F(Sharing, OpensEachAllocationOnce) {
  const SharedMemory first = share(100, 7);
  const SharedMemory second = share(100, 8);
  EXPECT_EQ(slot_->device(), nullptr);
  const auto once = slot_->at(first, 100);
  ASSERT_TRUE(once) << once.error().message;
  EXPECT_EQ(slot_->device()->name(), "gpu:1");
  EXPECT_EQ((*once)[99], std::byte{7});
  EXPECT_EQ(*slot_->at(first, 50), *once);
  EXPECT_EQ((**slot_->at(second, 100)), std::byte{8});
  EXPECT_EQ(slot_->open(), 2U);
}

TEST_F(Sharing, WhatDoesNotLieInTheMemoryIsRefused) {
  SharedMemory shared = share(100, 7);
  EXPECT_FALSE(slot_->at(shared, 101));
  shared.offset = 60;
  EXPECT_TRUE(slot_->at(shared, 40));
  EXPECT_FALSE(slot_->at(shared, 41));
  shared.offset = ~std::uint64_t{0};
  EXPECT_FALSE(slot_->at(shared, 1));
  shared.allocation_bytes = ~std::uint64_t{0};  // the lane's numbers must not be trusted
  EXPECT_FALSE(slot_->at(shared, 1));
}

// CUDA does not map the same memory twice. When a lane has freed an allocation that is open here
// and shares a new one at the same address, the old mapping is closed.
TEST_F(Sharing, WhatLiesInThePlaceOfOldMemoryTakesItsPlace) {
  ASSERT_TRUE(slot_->at(share(100, 1), 100));
  ::setenv("FAKE_DEVICE_ONE_MAPPING", "1", 1);
  const auto second = slot_->at(share(100, 2), 100);
  ::unsetenv("FAKE_DEVICE_ONE_MAPPING");
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(**second, std::byte{2});
  EXPECT_EQ(slot_->open(), 1U);
}

TEST_F(Sharing, SmallMemoryStaysOpenAndLargeDoesNot) {
  ASSERT_TRUE(slot_->at(share(100, 1), 100));
  ASSERT_TRUE(slot_->at(share(kKeepOpenBytes + 1, 1), 100));
  EXPECT_EQ(slot_->open(), 2U);
  slot_->close_large();
  EXPECT_EQ(slot_->open(), 1U);
  slot_->close_all();
  EXPECT_EQ(slot_->open(), 0U);
}

// Memory that a lane has freed stays in use while it is open here.
TEST_F(Sharing, NoMoreSmallMemoryStaysOpenThanALaneMayKeep) {
  for (int lent = 0; lent < 100; ++lent) {
    ASSERT_TRUE(slot_->at(share(kKeepOpenBytes / 4, 1), 100));
    slot_->close_large();
    EXPECT_LE(slot_->open() * kKeepOpenBytes / 4, kKeepOpenBytesInAll);
  }
  EXPECT_GE(slot_->open(), 1U);
}

}  // namespace
}  // namespace assay
