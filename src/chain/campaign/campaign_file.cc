#include "chain/campaign/campaign_file.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <set>

#include "base/fd.h"
#include "base/text.h"
#include "base/toml.h"
#include "base/variables.h"

namespace assay::chain::campaign {
namespace {

namespace fs = std::filesystem;

// What each machine of an allocation runs before `assay`: it finds the addresses of them all, as
// the scheduler knows them, and puts them behind the words of `assay chain run`.
constexpr const char* kOnAllMachines = R"sh(machines=$(
  for node in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
    name=$(scontrol show node "$node" --oneliner | sed 's/.* NodeAddr=\([^ ]*\).*/\1/')
    getent ahostsv4 "$name" | head -n 1 | cut -d ' ' -f 1
  done | paste -sd ,)
exec "$@" --per-node --machines="$machines")sh";

// The keys of the file as they are written.
struct Written {
  std::vector<std::string> files;
  std::vector<std::string> exclude;
  std::vector<std::string> modes;
  std::string known;
  double retries = 0;
  double quarantine = 3;
  std::vector<std::string> gpus;
  std::vector<std::string> hosts;
  std::string remote = "ssh -o BatchMode=yes -o ConnectTimeout=10 {host}";
  double jobs = 0;
  double nodes = 1;
  std::vector<std::string> options;
  std::string log_dir;
};

Status read_chains(TomlTable& table, Written& written, Campaign& campaign) {
  ASSAY_CHECK(table.read("files", written.files));
  ASSAY_CHECK(table.read("exclude", written.exclude));
  ASSAY_CHECK(table.read("modes", written.modes));
  ASSAY_CHECK(table.read("directory", campaign.directory));
  ASSAY_CHECK(table.read("flags", campaign.flags));
  ASSAY_CHECK(table.read("known", written.known));
  ASSAY_CHECK(table.read("retries", written.retries));
  return table.read("quarantine", written.quarantine);
}

Status read_table(const std::string& name, TomlTable& table, Written& written, Campaign& campaign) {
  if (name == "chains") return read_chains(table, written, campaign);
  if (name == "seats") {
    ASSAY_CHECK(table.read("gpus", written.gpus));
    ASSAY_CHECK(table.read("hosts", written.hosts));
    ASSAY_CHECK(table.read("remote", written.remote));
    return table.read("program", campaign.program);
  }
  if (name == "slurm") {
    ASSAY_CHECK(table.read("jobs", written.jobs));
    ASSAY_CHECK(table.read("nodes", written.nodes));
    ASSAY_CHECK(table.read("program", campaign.program));
    return table.read("options", written.options);
  }
  if (name == "limits") {
    ASSAY_CHECK(table.read("model", campaign.limits.model));
    ASSAY_CHECK(table.read("stage", campaign.limits.stage));
    ASSAY_CHECK(table.read("idle", campaign.limits.idle));
    return table.read("lost", campaign.limits.lost);
  }
  if (name == "output") return table.read("log_dir", written.log_dir);
  return usage_error(
      fmt::format("unknown table [{}]; known tables: chains, seats, slurm, limits, output", name));
}

std::vector<fs::path> matches_of(const std::string& pattern) {
  glob_t found{};
  std::vector<fs::path> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  ::globfree(&found);
  return paths;
}

// The value of a params file's `model_name`, which names the folder that its script writes to.
std::string group_of(const fs::path& file) {
  constexpr std::string_view kKey = "model_name:";
  for (const std::string& line : split_at(read_file(file).value_or(""), '\n')) {
    if (line.starts_with(kKey)) return std::string(trimmed(line.substr(kKey.size())));
  }
  return {};
}

Status find_models(const Written& written, const std::string& where, Campaign& campaign) {
  std::set<std::string> seen;
  for (const std::string& pattern : written.files) {
    const std::vector<fs::path> found = matches_of((fs::path(campaign.directory) / pattern));
    if (found.empty()) {
      return usage_error(fmt::format("{}: chains.files: no file matches {} in the folder {}", where,
                                     pattern, campaign.directory));
    }
    for (const fs::path& path : found) {
      const std::string file = path.lexically_relative(campaign.directory).string();
      const bool excluded = std::ranges::any_of(written.exclude, [&](const std::string& each) {
        return ::fnmatch(each.c_str(), file.c_str(), 0) == 0;
      });
      if (excluded || !seen.insert(file).second) continue;
      const bool stages = file.ends_with(".toml");
      if (!stages && written.modes.empty()) {
        return usage_error(where + ": chains.modes is missing: [\"lite_train_lite_infer\"], …");
      }
      const std::string group = group_of(path);
      if (stages) campaign.models.push_back({file, "", group});
      for (const std::string& mode : written.modes) {
        if (!stages) campaign.models.push_back({file, mode, group});
      }
    }
  }
  if (!campaign.models.empty()) return {};
  return usage_error(where + ": chains.files names no file, or chains.exclude takes all");
}

void add_seats(const Written& written, Campaign& campaign) {
  std::string srun =
      fmt::format("srun --job-name={} --nodes={:.0f} --ntasks-per-node=1 {}",
                  shell_word(campaign.name), written.nodes, shell_line(written.options));
  if (written.nodes > 1) srun += " " + shell_line({"bash", "-c", kOnAllMachines, "assay"});
  constexpr double kMostJobs = 10'000;
  const int jobs = static_cast<int>(std::clamp(written.jobs, 0.0, kMostJobs));
  for (int job = 1; job <= jobs; ++job) {
    campaign.seats.push_back({fmt::format("slurm {}", job), "", srun});
  }
  if (!campaign.seats.empty()) return;
  const std::vector<std::string> one{""};
  for (const std::string& host : written.hosts.empty() ? one : written.hosts) {
    for (const std::string& gpus : written.gpus.empty() ? one : written.gpus) {
      campaign.seats.push_back({host, gpus, host.empty() ? "" : written.remote});
    }
  }
}

Result<Campaign> from_text(std::string_view text, const std::string& where) {
  Campaign campaign;
  Written written;
  ASSAY_TRY(TomlTable table, TomlTable::parse(text, where, 1));
  campaign.name = fs::path(where).stem().string();
  ASSAY_CHECK(table.read("name", campaign.name));
  const auto read = [&](const std::string& name, TomlTable& each) {
    return read_table(name, each, written, campaign);
  };
  ASSAY_CHECK(table.each_table(read));
  ASSAY_CHECK(table.refuse_others());
  if (written.log_dir.empty()) {
    return usage_error(where + ": [output] needs log_dir, the folder of logs and results");
  }
  campaign.log_dir = with_variables(written.log_dir);
  if (campaign.log_dir.string().find('$') != std::string::npos) {
    return usage_error(fmt::format("{}: output.log_dir {} names a variable that is not set", where,
                                   campaign.log_dir.string()));
  }
  campaign.known = written.known;
  campaign.retries = static_cast<int>(std::clamp(written.retries, 0.0, 100.0));
  campaign.quarantine = static_cast<int>(std::clamp(written.quarantine, 0.0, 1e6));
  if (!(campaign.limits.lost > 0)) return usage_error(where + ": limits.lost must be above 0");
  add_seats(written, campaign);
  ASSAY_CHECK(find_models(written, where, campaign));
  return campaign;
}

}  // namespace

bool is_campaign_of_chains(const fs::path& file) {
  if (file.extension() != ".toml") return false;
  const std::vector<std::string> lines = split_at(read_file(file).value_or(""), '\n');
  return std::ranges::any_of(
      lines, [](const std::string& line) { return trimmed(line).starts_with("[chains]"); });
}

Result<Campaign> read_campaign(const fs::path& file) {
  const auto text = read_file(file);
  if (!text) return usage_error(text.error().message);
  return from_text(*text, file.string());
}

}  // namespace assay::chain::campaign
