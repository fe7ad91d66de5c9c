#include "device/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <charconv>
#include <cstdlib>

#include "base/process.h"

namespace assay {
namespace {

class PluginDevice final : public Device {
 public:
  PluginDevice(const AssayDevicePlugin& plugin, AssayDevice* device, int number)
      : plugin_(plugin), device_(device), name_(fmt::format("gpu:{}", number)) {}
  ~PluginDevice() override { plugin_.close(device_); }

  std::string_view name() const override { return name_; }
  bool is_host() const override { return false; }

  Status fill(const FillRule& rule, const FillKey& key, DType dtype, void* out, std::uint64_t count,
              std::uint64_t first_element) override {
    return checked("fill", plugin_.fill(device_, &rule, &key, static_cast<std::uint8_t>(dtype), out,
                                        count, first_element));
  }
  Status checksum(const void* memory, std::uint64_t bytes, std::uint64_t* result) override {
    return checked("checksum", plugin_.checksum(device_, memory, bytes, result));
  }
  Status copy(void* to, const void* from, std::uint64_t bytes) override {
    return checked("copy", plugin_.copy(device_, to, from, bytes));
  }
  Status synchronize() override { return checked("synchronize", plugin_.synchronize(device_)); }
  Status mark() override { return checked("mark", plugin_.mark(device_)); }
  Result<bool> reached() override {
    bool yes = false;
    ASSAY_CHECK(checked("reached", plugin_.reached(device_, &yes)));
    return yes;
  }

  Result<Measurement> measure(DType dtype, const void* left, const void* right, std::uint64_t count,
                              Tolerance under) override {
    Measurement found;
    ASSAY_CHECK(checked("measure", plugin_.measure(device_, static_cast<std::uint8_t>(dtype), left,
                                                   right, count, &under, &found)));
    return found;
  }

  Result<void*> allocate(std::uint64_t bytes) override {
    void* memory = nullptr;
    ASSAY_CHECK(checked("allocate", plugin_.allocate(device_, bytes, &memory)));
    return memory;
  }
  void release(void* memory) override { plugin_.release(device_, memory); }
  Result<DeviceSpace> space() override {
    DeviceSpace space;
    ASSAY_CHECK(checked("free memory", plugin_.space(device_, &space)));
    return space;
  }
  Status pin(void* host, std::uint64_t bytes) override {
    return checked("pin", plugin_.pin(device_, host, bytes));
  }
  void unpin(void* host) override { plugin_.unpin(device_, host); }

  Result<SharedMemory> share(const void* memory, std::uint64_t bytes) override {
    SharedMemory shared;
    ASSAY_CHECK(checked("share", plugin_.share(device_, memory, bytes, &shared)));
    return shared;
  }
  void end_sharing() override { plugin_.end_sharing(device_); }
  Result<OpenedMemory> open(const SharedMemory& shared) override {
    OpenedMemory opened;
    ASSAY_CHECK(checked("open shared memory", plugin_.open_shared(device_, &shared, &opened)));
    return opened;
  }
  void close(std::byte* base) override { plugin_.close_shared(device_, base); }

 private:
  Status checked(std::string_view what, int code) const {
    if (code == 0) return {};
    return fail(fmt::format("{}: {}: {} ({})", name_, what, plugin_.describe(code), plugin_.name));
  }

  const AssayDevicePlugin& plugin_;
  AssayDevice* device_;
  std::string name_;
};

// An error for a plug-in of another build than this program's.
Status check_versions(const AssayDevicePlugin& plugin, const std::string& file) {
  const bool same = plugin.abi == kDevicePluginAbi &&
                    plugin.fill_version == static_cast<std::uint32_t>(kFillVersion) &&
                    plugin.measurement_version == static_cast<std::uint32_t>(kMeasurementVersion) &&
                    plugin.measurement_bytes == sizeof(Measurement);
  if (same) return {};
  return fail(
      fmt::format("{} is of another version of assay; build or install both together", file));
}

std::filesystem::path plugin_near(const std::filesystem::path& binary) {
  std::error_code ignored;
  const std::filesystem::path folder = binary.parent_path();
  auto beside = folder / kDevicePluginFile;
  if (std::filesystem::exists(beside, ignored)) return beside;
  return folder.parent_path() / "lib" / kDevicePluginFile;
}

// The library that this code lies in, such as the lane's module. Empty in a program: the loader
// knows a program by the word that it was called with, which would be looked up in the working
// folder.
std::filesystem::path own_library() {
  Dl_info here{};
  link_map* map = nullptr;
  const int found = ::dladdr1(reinterpret_cast<const void*>(&device_plugin_file), &here,
                              reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP);
  const std::filesystem::path file = found != 0 && map != nullptr ? map->l_name : "";
  return file.is_absolute() ? file : std::filesystem::path();
}

}  // namespace

std::filesystem::path device_plugin_file() {
  if (const char* named = std::getenv("ASSAY_DEVICE_PLUGIN"); named != nullptr) return named;
  std::error_code ignored;
  std::filesystem::path file;
  if (const auto library = own_library(); !library.empty()) file = plugin_near(library);
  if (const auto program = own_executable(); program && !std::filesystem::exists(file, ignored)) {
    file = plugin_near(*program);
  }
  return file;
}

Result<const AssayDevicePlugin*> load_device_plugin(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    if (std::getenv("ASSAY_DEVICE_PLUGIN") != nullptr) {
      return fail("ASSAY_DEVICE_PLUGIN: there is no file " + file.string());
    }
    return fail(
        fmt::format("there is no plug-in for GPUs ({}): this assay was built without CUDA; "
                    "--num_gpus=0 runs on the CPU",
                    file.string()));
  }
  // Never unloaded: the driver's threads may outlive a dlclose.
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fail(fmt::format("the plug-in for GPUs cannot be loaded: {}", ::dlerror()));
  }
  void* const symbol = ::dlsym(library, kDevicePluginSymbol);
  if (symbol == nullptr) {
    return fail(
        fmt::format("{} is no plug-in of assay: it lacks {}", file.string(), kDevicePluginSymbol));
  }
  const AssayDevicePlugin* const plugin = reinterpret_cast<AssayDevicePluginEntry>(symbol)();
  if (plugin == nullptr) return fail(file.string() + " gives no table");
  ASSAY_CHECK(check_versions(*plugin, file.string()));
  return plugin;
}

Result<std::shared_ptr<Device>> open_plugin_device(const AssayDevicePlugin& plugin, int number) {
  AssayDevice* device = nullptr;
  if (const int code = plugin.open(number, &device); code != 0) {
    return fail(fmt::format("gpu:{} cannot be opened: {} ({})", number, plugin.describe(code),
                            plugin.name));
  }
  return std::make_shared<PluginDevice>(plugin, device, number);
}

std::optional<int> gpu_number(std::string_view name) {
  constexpr std::string_view kGpu = "gpu:";
  if (!name.starts_with(kGpu)) return std::nullopt;
  const std::string_view digits = name.substr(kGpu.size());
  int number = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && number >= 0 ? std::optional(number) : std::nullopt;
}

Result<std::shared_ptr<Device>> open_device(std::string_view name) {
  // The host device is static, so nothing owns it.
  if (name == "cpu") return std::shared_ptr<Device>(std::shared_ptr<Device>(), &host_device());
  const std::optional<int> number = gpu_number(name);
  if (!number && name.starts_with("gpu")) {
    return usage_error(fmt::format("there is no device {}; there are gpu:0 …", name));
  }
  // Lanes reach any other device of their framework through the host.
  if (!number) return std::shared_ptr<Device>(std::shared_ptr<Device>(), &host_device());
  ASSAY_TRY(const AssayDevicePlugin* plugin, load_device_plugin(device_plugin_file()));
  return open_plugin_device(*plugin, *number);
}

}  // namespace assay
