#pragma once

// Plug-ins for devices, loaded at run time.

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "device/device.h"
#include "device/plugin_abi.h"

namespace assay {

// Where the plug-in is: what ASSAY_DEVICE_PLUGIN names, or else beside this program's libraries.
std::filesystem::path device_plugin_file();

// Loads it and checks its versions. It stays loaded.
Result<const AssayDevicePlugin*> load_device_plugin(const std::filesystem::path& file);

// GPU `number` as that plug-in counts them.
Result<std::shared_ptr<Device>> open_plugin_device(const AssayDevicePlugin& plugin, int number);

}  // namespace assay
