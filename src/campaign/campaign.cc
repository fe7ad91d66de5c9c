#include "campaign/campaign.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <type_traits>
#include <variant>

#include "base/fd.h"
#include "base/variables.h"
#include "campaign/tree.h"
#include "verdict/outcome.h"

namespace assay {
namespace {

using Kind = ConfigNode::Kind;

// A key and the variable that its value goes into. A table has keys of its own, or takes any key
// with a scalar.
struct Key {
  std::string name;
  std::variant<bool*, std::int64_t*, std::string*, std::filesystem::path*,
               std::vector<std::string>*, std::vector<std::pair<std::string, std::string>>*,
               std::vector<EngineArgument>*, Campaign*, std::vector<Key>>
      target;
};

class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  // Reads the table into the keys' targets. A target whose key is absent, or has no value, keeps
  // its value.
  Status read(const ConfigNode& table, const std::vector<Key>& keys, const std::string& prefix) {
    for (const ConfigNode& node : table.entries) {
      const auto key = std::find_if(keys.begin(), keys.end(),
                                    [&](const Key& each) { return each.name == node.name; });
      if (key == keys.end()) {
        std::vector<std::string> known;
        known.reserve(keys.size());
        for (const Key& each : keys) known.push_back(each.name);
        return usage_error(fmt::format("{}:{}: unknown key {}{}; known keys: {}", file_, node.line,
                                       prefix, node.name, fmt::join(known, ", ")));
      }
      if (node.kind == Kind::nothing) continue;
      const std::string name = prefix + node.name;
      ASSAY_CHECK(std::visit([&](const auto& to) { return set(to, node, name); }, key->target));
    }
    return {};
  }

 private:
  tl::unexpected<Error> wants(const ConfigNode& node, const std::string& name,
                              std::string_view what) const {
    return usage_error(fmt::format("{}:{}: {} must be {}", file_, node.line, name, what));
  }
  Status set(bool* value, const ConfigNode& node, const std::string& name) {
    if (node.kind != Kind::flag) return wants(node, name, "true or false");
    *value = node.text == "True";
    return {};
  }
  Status set(std::int64_t* value, const ConfigNode& node, const std::string& name) {
    const char* const end = node.text.data() + node.text.size();
    const auto parsed = std::from_chars(node.text.data(), end, *value);
    const bool whole = parsed.ec == std::errc() && parsed.ptr == end && *value >= 1;
    if (node.kind == Kind::number && whole) return {};
    return wants(node, name, "a whole number of at least 1");
  }
  template <typename Text>
    requires std::is_constructible_v<Text, std::string>
  Status set(Text* value, const ConfigNode& node, const std::string& name) {
    if (node.kind != Kind::text) return wants(node, name, "a text");
    *value = with_variables(node.text);
    return {};
  }
  Status set(Campaign* campaign, const ConfigNode& node, const std::string& name) {
    if (!campaign->input.empty()) return wants(node, name, "absent: there is another input");
    ASSAY_CHECK(set(&campaign->input_value, node, name));
    if (!campaign->input_value.empty()) campaign->input = node.name;
    return {};
  }
  Status set(std::vector<std::string>* value, const ConfigNode& node, const std::string& name) {
    value->clear();
    for (const ConfigNode& entry : node.entries) {
      if (entry.kind == Kind::text) value->push_back(with_variables(entry.text));
    }
    const bool texts = node.kind == Kind::list && value->size() == node.entries.size();
    return texts ? Status() : wants(node, name, "a list of texts");
  }
  template <typename Scalar>
  Status set(std::vector<Scalar>* value, const ConfigNode& node, const std::string& name) {
    if (node.kind != Kind::table) return wants(node, name, "a table");
    for (const ConfigNode& entry : node.entries) {
      if (entry.kind == Kind::nothing) continue;
      if (!entry.is_scalar()) return wants(entry, name + "." + entry.name, "one value");
      const std::string text = with_variables(entry.text);
      if constexpr (std::is_same_v<Scalar, EngineArgument>) {
        value->push_back({entry.name, text, fmt::format("{}:{}", file_, entry.line)});
      } else {
        value->push_back({entry.name, text});
      }
    }
    return {};
  }
  Status set(const std::vector<Key>& keys, const ConfigNode& node, const std::string& name) {
    if (node.kind != Kind::table) return wants(node, name, "a table");
    return read(node, keys, name + ".");
  }

  std::string file_;
};

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

Result<ConfigNode> read_tree(const std::filesystem::path& file) {
  const std::string extension = file.extension().string();
  if (extension != ".toml" && extension != ".yaml" && extension != ".yml") {
    return usage_error(file.string() + ": the file of a campaign ends in .toml, .yaml or .yml");
  }
  const auto text = read_file(file);
  if (!text) return usage_error(text.error().message);
  ASSAY_TRY(ConfigNode tree, extension == ".toml" ? toml_tree(*text, file.string())
                                                  : yaml_tree(*text, file.string()));
  if (tree.kind == Kind::table) return tree;
  return usage_error(file.string() + ": a campaign must be a table of keys");
}

std::vector<Key> keys_of(Campaign& campaign, std::string& engine) {
  using Keys = std::vector<Key>;
  Retest& retest = campaign.retest;
  return {{"name", &campaign.name},
          {"runner", Keys{{"engine", &engine},
                          {"foreground", &campaign.foreground},
                          {"dry_run", &campaign.dry_run},
                          {"pid_file", &campaign.pid_file}}},
          {"env", &campaign.environment},
          {"input", Keys{{"api_config", &campaign},
                         {"api_config_file", &campaign},
                         {"api_config_file_pattern", &campaign}}},
          {"output", Keys{{"log_dir", &campaign.log_dir}}},
          {"retest", Keys{{"enabled", &retest.enabled},
                          {"rounds", &retest.rounds},
                          {"error_configs", &retest.error_configs},
                          {"log_dir_template", &retest.log_dir_template},
                          {"skip_empty", &retest.skip_unavailable},
                          {"skip_missing", &retest.skip_unavailable},
                          {"skip_unavailable", &retest.skip_unavailable}}},
          {"engine_args", &campaign.engine_args}};
}

}  // namespace

Result<Campaign> read_campaign(const std::filesystem::path& file) {
  const std::string where = file.string();
  ASSAY_TRY(const ConfigNode tree, read_tree(file));
  Campaign campaign;
  campaign.name = file.stem().string();
  std::string engine;
  std::vector<Key> keys = keys_of(campaign, engine);
  std::int64_t version = 0;
  const bool toml = file.extension() == ".toml";
  if (toml) keys.push_back({"version", &version});
  ASSAY_CHECK(Reader(where).read(tree, keys, ""));
  if (toml && version != 1) {
    return usage_error(where + ": a campaign in TOML must have `version = 1`");
  }
  // engineV4's YAML keeps such a name as it is written.
  if (toml && campaign.log_dir.find("${") != std::string::npos) {
    return usage_error(fmt::format("{}: output.log_dir {} names a variable that is not set", where,
                                   campaign.log_dir));
  }
  if (campaign.pid_file.empty()) campaign.pid_file = default_pid_file(campaign.name);
  campaign.retest.error_configs = our_error_configs(campaign.retest.error_configs);
  return campaign;
}

std::filesystem::path default_pid_file(std::string name) {
  for (char& c : name) {
    const bool harmless = static_cast<unsigned char>(c) >= 0x80 || c == '.' || c == '_' ||
                          c == '-' || std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!harmless) c = '_';
  }
  return std::filesystem::path(".run") / (name + ".pid");
}

void set_engine_argument(Campaign& campaign, const EngineArgument& argument) {
  std::erase_if(campaign.engine_args,
                [&](const EngineArgument& each) { return each.name == argument.name; });
  campaign.engine_args.push_back(argument);
}

std::string error_name(const std::string& error_config) {
  std::string name = std::filesystem::path(error_config).filename().string();
  if (name.starts_with("api_config_")) name.erase(0, std::string_view("api_config_").size());
  if (name.ends_with(".txt")) name.resize(name.size() - std::string_view(".txt").size());
  return name;
}

Result<std::string> retest_folder(const Campaign& campaign, const std::string& previous,
                                  std::int64_t round, const std::string& error_config) {
  const auto plain = [](std::string folder) {
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    return folder;
  };
  const std::string& text = campaign.retest.log_dir_template;
  try {
    return fmt::format(
        fmt::runtime(text), fmt::arg("base_log_dir", plain(campaign.log_dir)),
        fmt::arg("previous_log_dir", plain(previous)), fmt::arg("round", round),
        fmt::arg("error_config", std::filesystem::path(error_config).filename().string()),
        fmt::arg("error_name", error_name(error_config)));
  } catch (const fmt::format_error& error) {
    return usage_error(
        fmt::format("retest.log_dir_template: cannot fill in {}: {}", text, error.what()));
  }
}

}  // namespace assay
