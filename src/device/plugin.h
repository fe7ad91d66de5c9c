#pragma once

// Device plug-ins, loaded at run time.

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "device/device.h"
#include "device/plugin_abi.h"

namespace assay {

// The plug-in's file: ASSAY_DEVICE_PLUGIN, or the file beside this program or beside the library
// that this code lies in. Never a file of the working folder.
std::filesystem::path device_plugin_file();

// Loads the plug-in and checks its versions. It is never unloaded.
Result<const AssayDevicePlugin*> load_device_plugin(const std::filesystem::path& file);

// Opens GPU `number`, as the plug-in numbers GPUs.
Result<std::shared_ptr<Device>> open_plugin_device(const AssayDevicePlugin& plugin, int number);

}  // namespace assay
