#include <malloc.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/system_memory.h"
#include "cli/verbs.h"
#include "slot/slot.h"

namespace assay {
namespace {
constexpr int kSupervisorFd = 3;

// Keeps freed memory for the next comparison, because new pages cost more than the comparison. The
// float64 evaluation of the largest case needs 200 to 400 MB.
void keep_freed_memory() {
  constexpr std::uint64_t kMost = std::uint64_t{512} << 20;
  constexpr std::uint64_t kPart = 64;  // a slot keeps at most this fraction of the host's memory
  const auto memory = system_memory();
  const std::uint64_t kept = memory ? std::min(kMost, memory->total / kPart) : kMost / 4;
  (void)::mallopt(M_MMAP_MAX, 0);
  (void)::mallopt(M_TRIM_THRESHOLD, static_cast<int>(kept));
  (void)::mallopt(M_TOP_PAD, 1 << 24);
}
}  // namespace

Verb add_slot_verb(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("slot", "(internal)");
  app->group("");  // not in --help
  // Ignored: they show up in lists of processes. A slot gets its work over its socket.
  auto shown = std::make_shared<std::vector<std::string>>();
  app->add_option("shown", *shown, "its number and the folder of its lanes' logs");
  auto device = std::make_shared<std::string>();
  app->add_option("--device", *device, "device to open at the start");
  return {app, [shown, device]() -> Result<int> {
            keep_freed_memory();
            ASSAY_CHECK(run_slot(Fd(kSupervisorFd), *device));
            return kAllGood;
          }};
}

}  // namespace assay
