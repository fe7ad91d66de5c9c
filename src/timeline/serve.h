#pragma once

// `assay timeline open`: hands one trace to the Perfetto UI in a browser on this machine.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"

namespace assay::timeline {

// The address that makes the Perfetto UI fetch the trace from `port` and open the pipeline's group
// of tracks. The UI fetches from 127.0.0.1:9001 only, so that is the port to prefer.
std::string perfetto_address(std::uint16_t port);
inline constexpr std::uint16_t kPerfettoPort = 9001;

// Serves the file at /trace on 127.0.0.1 (port 0: any free one), to one client after another, until
// `stop` is true (looked at four times a second) or SIGINT or SIGTERM comes. Only GET and HEAD;
// nothing but this file is ever read. `listening` is told the port.
Status serve_trace(const std::filesystem::path& path, std::uint16_t port,
                   const std::function<void(std::uint16_t)>& listening,
                   const std::atomic<bool>& stop);

}  // namespace assay::timeline
