#include "campaign/campaign.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/glob.h"
#include "base/text.h"
#include "base/toml.h"
#include "verdict/outcome.h"
#include "yaml/yaml.h"

namespace assay::campaign {
namespace {

// The text with $NAME and ${NAME} replaced by environment variables. An unset variable stays as it
// is written.
std::string with_variables(std::string_view text) {
  constexpr std::string_view kOfName =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t dollar = std::min(text.find('$', at), text.size());
    result.append(text, at, dollar - at);
    const bool braces = text.substr(dollar).starts_with("${");
    const std::size_t begin = std::min(dollar + (braces ? 2 : 1), text.size());
    const std::size_t end = std::min(text.find_first_not_of(kOfName, begin), text.size());
    const bool named = end > begin && (!braces || text.substr(end).starts_with('}'));
    const std::string name(text.substr(begin, end - begin));
    const char* value = named ? std::getenv(name.c_str()) : nullptr;
    at = named ? end + (braces ? 1 : 0) : begin;
    value != nullptr ? result += value : result.append(text, dollar, at - dollar);
  }
  return result;
}

namespace fs = std::filesystem;

// What each machine of an allocation runs before `assay`: it finds the addresses of them all, as
// the scheduler knows them, and puts them behind the words of `assay chain run`.
constexpr const char* kOnAllMachines = R"sh(machines=$(
  for node in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
    name=$(scontrol show node "$node" --oneliner | sed 's/.* NodeAddr=\([^ ]*\).*/\1/')
    getent ahostsv4 "$name" | head -n 1 | cut -d ' ' -f 1
  done | paste -sd ,)
exec "$@" --per-node --machines="$machines")sh";

// The keys of a campaign of chains that become its models and seats.
struct Written {
  std::vector<std::string> files;
  std::vector<std::string> exclude;
  std::vector<std::string> modes;
  std::vector<std::string> gpus;
  std::vector<std::string> hosts;
  std::string remote = "ssh -o BatchMode=yes -o ConnectTimeout=10 {host}";
  double jobs = 0;
  double nodes = 1;
  std::vector<std::string> options;
};

Status read_rounds(TomlTable& file, const std::string& where, Campaign& campaign) {
  Retest& retest = campaign.retest;
  std::string engine;
  std::string pid_file;
  std::array<std::pair<const char*, std::string>, 3> inputs{
      {{"api_config", ""}, {"api_config_file", ""}, {"api_config_file_pattern", ""}}};
  ASSAY_CHECK(file.read_table("runner", [&](const std::string&, TomlTable& table) {
    return table.read("engine", engine, "foreground", campaign.foreground, "dry_run",
                      campaign.dry_run, "pid_file", pid_file);
  }));
  ASSAY_CHECK(file.read_table("input", [&](const std::string&, TomlTable& table) {
    return table.read(inputs[0].first, inputs[0].second, inputs[1].first, inputs[1].second,
                      inputs[2].first, inputs[2].second);
  }));
  ASSAY_CHECK(file.read_table("retest", [&](const std::string&, TomlTable& table) {
    bool& skip = retest.skip_unavailable;
    return table.read("enabled", retest.enabled, "rounds", retest.rounds, "error_configs",
                      retest.error_configs, "log_dir_template", retest.log_dir_template,
                      "skip_empty", skip, "skip_missing", skip, "skip_unavailable", skip);
  }));
  ASSAY_CHECK(file.read_scalars("env", [&](const ConfigNode& entry) -> Status {
    campaign.environment.emplace_back(entry.name, with_variables(entry.text));
    return {};
  }));
  ASSAY_CHECK(file.read_scalars("engine_args", [&](const ConfigNode& entry) -> Status {
    campaign.engine_args.push_back(
        {entry.name, with_variables(entry.text), fmt::format("{}:{}", where, entry.line)});
    return {};
  }));
  for (const auto& [name, value] : inputs) {
    if (value.empty()) continue;
    if (!campaign.input.empty()) {
      return usage_error(
          fmt::format("{}: [input] takes {} or {}, not both", where, campaign.input, name));
    }
    campaign.input = name;
    campaign.input_value = with_variables(value);
  }
  campaign.pid_file = with_variables(pid_file);
  retest.log_dir_template = with_variables(retest.log_dir_template);
  for (std::string& each : retest.error_configs) each = with_variables(each);
  return {};
}

// Translates engineV4's files of failures to assay's, and keeps each once. Without any, all
// failures that a second run may decide otherwise.
std::vector<std::string> our_error_configs(const std::vector<std::string>& files) {
  constexpr std::array<std::pair<std::string_view, Outcome>, 8> kOthers{{
      {"paddle_accuracy", Outcome::mismatch},
      {"paddle_bitwise", Outcome::unstable},
      {"paddle_crash", Outcome::crash},
      {"paddle_cuda", Outcome::crash},
      {"cuda_error", Outcome::crash},
      {"config_convert", Outcome::unsupported},
      {"config_input", Outcome::invalid},
      {"config_parse", Outcome::invalid},
  }};
  std::vector<std::string> ours;
  for (std::string file : files) {
    for (const auto& [other, outcome] : kOthers) {
      if (error_name(file) == other) file = info(outcome).log;
    }
    if (std::find(ours.begin(), ours.end(), file) == ours.end()) ours.push_back(file);
  }
  if (!ours.empty()) return ours;
  for (const OutcomeInfo& outcome : kOutcomes) {
    if (outcome.failed && outcome.outcome != Outcome::invalid) ours.emplace_back(outcome.log);
  }
  return ours;
}

Status read_chains(TomlTable& file, Written& written, Campaign& campaign) {
  std::string known;
  double retries = campaign.retries;
  double quarantine = campaign.quarantine;
  ASSAY_CHECK(file.read_table("chains", [&](const std::string&, TomlTable& table) {
    return table.read("files", written.files, "exclude", written.exclude, "modes", written.modes,
                      "directory", campaign.directory, "flags", campaign.flags, "known", known,
                      "retries", retries, "quarantine", quarantine);
  }));
  ASSAY_CHECK(file.read_table("seats", [&](const std::string&, TomlTable& table) {
    return table.read("gpus", written.gpus, "hosts", written.hosts, "remote", written.remote,
                      "program", campaign.program);
  }));
  ASSAY_CHECK(file.read_table("slurm", [&](const std::string&, TomlTable& table) {
    return table.read("jobs", written.jobs, "nodes", written.nodes, "program", campaign.program,
                      "options", written.options);
  }));
  ASSAY_CHECK(file.read_table("limits", [&](const std::string&, TomlTable& table) {
    Limits& limits = campaign.limits;
    return table.read("model", limits.model, "stage", limits.stage, "idle", limits.idle, "lost",
                      limits.lost);
  }));
  campaign.foreground = true;
  campaign.known = known;
  campaign.retries = static_cast<int>(std::clamp(retries, 0.0, 100.0));
  campaign.quarantine = static_cast<int>(std::clamp(quarantine, 0.0, 1e6));
  return {};
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
    const std::vector<std::string> found = paths_like(fs::path(campaign.directory) / pattern);
    if (found.empty()) {
      return usage_error(fmt::format("{}: chains.files: no file matches {} in the folder {}", where,
                                     pattern, campaign.directory));
    }
    for (const fs::path path : found) {
      const std::string file = path.lexically_relative(campaign.directory).string();
      const bool excluded = std::ranges::any_of(written.exclude, [&](const std::string& each) {
        return ::fnmatch(each.c_str(), file.c_str(), 0) == 0;
      });
      if (excluded || !seen.insert(file).second) continue;
      const bool stages = file.ends_with(".toml");
      if (!stages && written.modes.empty()) {
        return usage_error(where + ": chains.modes is missing: [\"lite_train_lite_infer\"], …");
      }
      const std::vector<std::string> none{""};
      for (const std::string& mode : stages ? none : written.modes) {
        campaign.models.push_back({file, mode, group_of(path)});
      }
    }
  }
  if (!campaign.models.empty()) return {};
  return usage_error(where + ": chains.files names no file, or chains.exclude takes all");
}

std::vector<Seat> seats_of(const Written& written, const std::string& name) {
  std::vector<Seat> seats;
  std::string srun = fmt::format("srun --job-name={} --nodes={:.0f} --ntasks-per-node=1 {}",
                                 shell_word(name), written.nodes, shell_line(written.options));
  if (written.nodes > 1) srun += " " + shell_line({"bash", "-c", kOnAllMachines, "assay"});
  constexpr double kMostJobs = 10'000;
  const int jobs = static_cast<int>(std::clamp(written.jobs, 0.0, kMostJobs));
  for (int job = 1; job <= jobs; ++job) seats.push_back({fmt::format("slurm {}", job), "", srun});
  if (!seats.empty()) return seats;
  const std::vector<std::string> one{""};
  for (const std::string& host : written.hosts.empty() ? one : written.hosts) {
    for (const std::string& gpus : written.gpus.empty() ? one : written.gpus) {
      seats.push_back({host, gpus, host.empty() ? "" : written.remote});
    }
  }
  return seats;
}

// .run/NAME.pid
fs::path default_pid_file(std::string name) {
  for (char& c : name) {
    const bool harmless = static_cast<unsigned char>(c) >= 0x80 || c == '.' || c == '_' ||
                          c == '-' || std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!harmless) c = '_';
  }
  return fs::path(".run") / (name + ".pid");
}

Result<ConfigNode> read_tree(const fs::path& file) {
  const std::string extension = file.extension().string();
  if (extension != ".toml" && extension != ".yaml" && extension != ".yml") {
    return usage_error(file.string() + ": the file of a campaign ends in .toml, .yaml or .yml");
  }
  const auto text = read_file(file);
  if (!text) return usage_error(text.error().message);
  if (extension == ".toml") return toml_tree(*text, file.string());
  ASSAY_TRY(ConfigNode tree, yaml_tree(*text, file.string()));
  if (tree.kind == ConfigNode::Kind::table) return tree;
  return usage_error(file.string() + ": a campaign must be a table of keys");
}

// Fills in the folder's variables. engineV4's YAML keeps the name of an unset one as it is written.
Status set_folder(const std::string& folder, const fs::path& file, Campaign& campaign) {
  campaign.log_dir = with_variables(folder);
  if (file.extension() != ".toml" || campaign.log_dir.string().find('$') == std::string::npos) {
    return {};
  }
  return usage_error(fmt::format("{}: output.log_dir {} names a variable that is not set",
                                 file.string(), campaign.log_dir.string()));
}

}  // namespace

Result<Campaign> read_campaign(const fs::path& file) {
  const std::string where = file.string();
  ASSAY_TRY(ConfigNode tree, read_tree(file));
  const bool chains =
      std::ranges::find(tree.entries, "chains", &ConfigNode::name) != tree.entries.end();
  TomlTable table(std::move(tree), where);
  Campaign campaign;
  Written written;
  campaign.name = file.stem().string();
  std::string folder;
  if (file.extension() == ".toml") ASSAY_CHECK(table.want_version(1));
  ASSAY_CHECK(table.read("name", campaign.name));
  ASSAY_CHECK(table.read_table("output", [&](const std::string&, TomlTable& output) {
    return output.read("log_dir", folder);
  }));
  ASSAY_CHECK(chains ? read_chains(table, written, campaign) : read_rounds(table, where, campaign));
  ASSAY_CHECK(table.refuse_others());
  ASSAY_CHECK(set_folder(folder, file, campaign));
  campaign.name = with_variables(campaign.name);
  if (campaign.pid_file.empty()) campaign.pid_file = default_pid_file(campaign.name);
  campaign.retest.error_configs = our_error_configs(campaign.retest.error_configs);
  if (!chains) return campaign;
  if (folder.empty()) {
    return usage_error(where + ": [output] needs log_dir, the folder of logs and results");
  }
  if (!(campaign.limits.lost > 0)) return usage_error(where + ": limits.lost must be above 0");
  campaign.seats = seats_of(written, campaign.name);
  ASSAY_CHECK(find_models(written, where, campaign));
  return campaign;
}

void set_engine_argument(Campaign& campaign, const EngineArgument& argument) {
  std::erase_if(campaign.engine_args,
                [&](const EngineArgument& each) { return each.name == argument.name; });
  campaign.engine_args.push_back(argument);
}

std::string error_name(const std::string& error_config) {
  std::string name = fs::path(error_config).filename().string();
  if (name.starts_with("api_config_")) name.erase(0, std::string_view("api_config_").size());
  if (name.ends_with(".txt")) name.resize(name.size() - std::string_view(".txt").size());
  return name;
}

}  // namespace assay::campaign
