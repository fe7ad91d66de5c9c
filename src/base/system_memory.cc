#include "base/system_memory.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/text.h"

namespace assay {
namespace {

std::optional<std::uint64_t> number_in(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;  // "max": no limit
  return number;
}

std::optional<std::uint64_t> number_in(const std::filesystem::path& file) {
  const auto text = read_file(file);
  return text ? number_in(std::string_view(*text)) : std::nullopt;
}

// The number that follows `key` at the start of a line.
std::optional<std::uint64_t> field_of(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at == 0 || text[at - 1] == '\n') return number_in(text.substr(at + key.size()));
  }
  return std::nullopt;
}

// Inactive file pages count as available: the kernel drops them first.
void apply_limit(SystemMemory& memory, const std::filesystem::path& folder, const char* limit_file,
                 const char* usage_file, std::string_view cache_key) {
  const auto limit = number_in(folder / limit_file);
  if (!limit || *limit >= memory.total) return;
  memory.total = *limit;
  const auto stat = read_file(folder / "memory.stat");
  const std::uint64_t cache = stat ? field_of(*stat, cache_key).value_or(0) : 0;
  const std::uint64_t usage = number_in(folder / usage_file).value_or(0);
  const std::uint64_t used = usage - std::min(usage, cache);
  memory.available = std::min(memory.available, *limit - std::min(*limit, used));
}

// The groups of this process in a hierarchy mounted at `mount`, from its root down. Each may have a
// limit. `controllers`: empty for version 2. A line of proc/self/cgroup is N:CONTROLLERS:/PATH.
std::vector<std::filesystem::path> own_groups(std::string_view lines, std::string_view controllers,
                                              const std::filesystem::path& mount) {
  std::vector<std::filesystem::path> groups{mount};
  for (const std::string& line : split_at(lines, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto all = split_at(line.substr(first + 1, second - first - 1), ',');
    const bool here =
        controllers.empty() ? all.empty() : std::ranges::find(all, controllers) != all.end();
    if (!here) continue;
    for (const std::string& name : split_at(line.substr(second + 1), '/')) {
      if (!name.empty()) groups.push_back(groups.back() / name);
    }
  }
  return groups;
}

}  // namespace

Result<SystemMemory> system_memory(const std::filesystem::path& root) {
  ASSAY_TRY(const std::string text, read_file(root / "proc/meminfo"));
  SystemMemory memory;
  memory.total = field_of(text, "MemTotal:").value_or(0) * 1024;
  memory.available = field_of(text, "MemAvailable:").value_or(0) * 1024;
  const std::filesystem::path mount = root / "sys/fs/cgroup";
  const std::string own = read_file(root / "proc/self/cgroup").value_or("");
  for (const auto& tree : {mount, mount / "unified"}) {
    for (const auto& group : own_groups(own, "", tree)) {
      apply_limit(memory, group, "memory.max", "memory.current", "inactive_file ");
    }
  }
  for (const auto& group : own_groups(own, "memory", mount / "memory")) {
    apply_limit(memory, group, "memory.limit_in_bytes", "memory.usage_in_bytes",
                "total_inactive_file ");
  }
  return memory;
}

std::uint64_t memory_kills(const std::filesystem::path& root) {
  const std::filesystem::path mount = root / "sys/fs/cgroup";
  const std::string own = read_file(root / "proc/self/cgroup").value_or("");
  const auto kills_in = [](const std::filesystem::path& file) {
    const auto text = read_file(file);
    return text ? field_of(*text, "oom_kill ").value_or(0) : 0;
  };
  std::uint64_t kills = kills_in(root / "proc/vmstat");
  for (const auto& tree : {mount, mount / "unified"}) {
    for (const auto& group : own_groups(own, "", tree)) kills += kills_in(group / "memory.events");
  }
  for (const auto& group : own_groups(own, "memory", mount / "memory")) {
    kills += kills_in(group / "memory.oom_control");
  }
  return kills;
}

}  // namespace assay
