#include "chain/params/gpu_entry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/text.h"

namespace assay::chain::params {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 4 &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// True for an IPv4 address or a host name.
bool is_host(std::string_view text) {
  if (text.empty() || text.front() == '-' || text.front() == '.') return false;
  bool has_letter = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) == 0 && c != '.' && c != '-') return false;
    has_letter = has_letter || std::isalpha(byte) != 0;
  }
  if (has_letter) return true;
  const std::vector<std::string> parts = split_at(text, '.');
  return parts.size() == 4 && std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
           return is_number(part) && part.size() <= 3 && std::stoi(part) <= 255;
         });
}

bool has_doubles(const std::vector<std::string>& list) {
  return std::set<std::string>(list.begin(), list.end()).size() != list.size();
}

}  // namespace

std::string GpuEntry::ips() const { return fmt::format("{}", fmt::join(hosts, ",")); }

Result<GpuEntry> parse_gpu_entry(std::string_view text) {
  GpuEntry entry;
  const std::size_t semicolon = text.find(';');
  if (semicolon != std::string_view::npos) {
    entry.hosts = split_at(text.substr(0, semicolon), ',');
    for (const std::string& host : entry.hosts) {
      if (!is_host(host)) return usage_error(fmt::format("`{}` is not a machine's address", host));
    }
    if (entry.hosts.empty()) return usage_error("no machine before the `;`");
    if (has_doubles(entry.hosts)) return usage_error("a machine is listed twice");
    text.remove_prefix(semicolon + 1);
  }
  entry.gpus = text;
  if (text == "-1") return entry;
  entry.ids = split_at(text, ',');
  if (entry.ids.empty() || !std::all_of(entry.ids.begin(), entry.ids.end(), is_number)) {
    return usage_error(
        fmt::format("expected -1 (CPU), GPU numbers such as 0 or 0,1, or machines such as "
                    "ip1,ip2;0,1, found `{}`",
                    text));
  }
  if (has_doubles(entry.ids)) return usage_error("a GPU is listed twice");
  return entry;
}

namespace {

// The text with each entry of gpu_list changed.
template <typename Change>
std::string with_entries(std::string_view text, const Change& change) {
  constexpr std::string_view kKey = "gpu_list:";
  std::vector<std::string> lines = split_at(text, '\n');
  for (std::string& line : lines) {
    if (!line.starts_with(kKey)) continue;
    std::vector<std::string> entries = split_at(std::string_view(line).substr(kKey.size()), '|');
    for (std::string& entry : entries) change(entry);
    line = fmt::format("{}{}", kKey, fmt::join(entries, "|"));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace

std::string on_machines(std::string_view text, const std::vector<std::string>& machines) {
  return with_entries(text, [&](std::string& entry) {
    const std::size_t semicolon = entry.find(';');
    if (semicolon == std::string::npos) return;
    entry = fmt::format("{}{}", fmt::join(machines, ","), entry.substr(semicolon));
  });
}

Result<std::string> on_gpus(std::string_view text, const std::vector<std::string>& gpus) {
  std::string too_many;
  std::string changed = with_entries(text, [&](std::string& entry) {
    const auto parsed = parse_gpu_entry(trimmed(entry));
    if (!parsed || parsed->ids.empty()) return;
    if (parsed->ids.size() > gpus.size()) too_many = entry;
    std::vector<std::string> chosen;
    // The n-th GPU of the file: its numbers may start anywhere.
    for (std::size_t n = 0; n < std::min(parsed->ids.size(), gpus.size()); ++n) {
      chosen.push_back(gpus[n]);
    }
    const std::size_t semicolon = entry.find(';');
    const std::string hosts = semicolon == std::string::npos ? "" : entry.substr(0, semicolon + 1);
    entry = fmt::format("{}{}", hosts, fmt::join(chosen, ","));
  });
  if (too_many.empty()) return changed;
  return usage_error(
      fmt::format("gpu_list:{} needs more GPUs than {}", too_many, fmt::join(gpus, ",")));
}

}  // namespace assay::chain::params
