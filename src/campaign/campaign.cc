#include "campaign/campaign.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <set>

#include "base/fd.h"
#include "campaign/tree.h"
#include "verdict/outcome.h"

namespace assay {
namespace {

using Kind = ConfigNode::Kind;

// With $NAME and ${NAME} replaced; a variable that is not set stays as it is written.
std::string expanded(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t dollar = text.find('$');
    result += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar);
    const bool braces = text.starts_with("${");
    const std::size_t begin = braces ? 2 : 1;
    std::size_t end = begin;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) {
      ++end;
    }
    const std::string name(text.substr(begin, end - begin));
    const bool closed = !braces || (end < text.size() && text[end] == '}');
    const std::size_t whole = braces && closed ? end + 1 : end;
    const char* value = closed && !name.empty() ? std::getenv(name.c_str()) : nullptr;
    result += value != nullptr ? std::string_view(value) : text.substr(0, whole);
    text.remove_prefix(whole);
  }
  return result;
}

// The settings of one table, each to be asked for by its name.
class Section {
 public:
  Section(std::string file, std::string name, const ConfigNode* table)
      : file_(std::move(file)), name_(std::move(name)), table_(table) {}

  static Result<Section> open(const std::string& file, Section& root, const std::string& name) {
    const ConfigNode* found = root.find(name);
    if (found != nullptr && found->kind == Kind::nothing) found = nullptr;
    if (found != nullptr && found->kind != Kind::table) {
      return usage_error(fmt::format("{}:{}: {} wants a table", file, found->line, name));
    }
    return Section(file, name, found);
  }

  const ConfigNode* find(const std::string& key) {
    asked_.insert(key);
    if (table_ == nullptr) return nullptr;
    for (const auto& [name, setting] : table_->entries) {
      if (name == key) return &setting;
    }
    return nullptr;
  }

  // Without the key, or where nothing stands behind it, `value` stays as it is.
  Status read(const std::string& key, bool& value) {
    const ConfigNode* found = find(key);
    if (found == nullptr || found->kind == Kind::nothing) return {};
    if (found->kind != Kind::flag) return wants(*found, key, "true or false");
    value = found->text == "True";
    return {};
  }
  Status read(const std::string& key, std::string& value) {
    const ConfigNode* found = find(key);
    if (found == nullptr || found->kind == Kind::nothing) return {};
    if (found->kind != Kind::text) return wants(*found, key, "a text");
    value = expanded(found->text);
    return {};
  }
  Status read(const std::string& key, std::int64_t least, std::int64_t& value) {
    const ConfigNode* found = find(key);
    if (found == nullptr || found->kind == Kind::nothing) return {};
    const char* const end = found->text.data() + found->text.size();
    std::int64_t number = 0;
    const auto parsed = std::from_chars(found->text.data(), end, number);
    const bool whole = parsed.ec == std::errc() && parsed.ptr == end;
    if (found->kind != Kind::number || !whole || number < least) {
      return wants(*found, key, fmt::format("a whole number of at least {}", least));
    }
    value = number;
    return {};
  }
  Status read(const std::string& key, std::vector<std::string>& value) {
    const ConfigNode* found = find(key);
    if (found == nullptr || found->kind == Kind::nothing) return {};
    std::vector<std::string> texts;
    for (const auto& [name, entry] : found->entries) {
      if (entry.kind == Kind::text) texts.push_back(expanded(entry.text));
    }
    if (found->kind != Kind::list || texts.size() != found->entries.size()) {
      return wants(*found, key, "a list of texts");
    }
    value = std::move(texts);
    return {};
  }

  // Every entry, each a scalar or nothing at all.
  Status each_scalar(const std::function<void(const std::string&, const ConfigNode&)>& visit) {
    if (table_ == nullptr) return {};
    for (const auto& [name, setting] : table_->entries) {
      asked_.insert(name);
      if (setting.kind == Kind::nothing) continue;
      if (!setting.is_scalar()) return wants(setting, name, "one value");
      visit(name, setting);
    }
    return {};
  }

  // Once everything was read.
  Status refuse_others() const {
    if (table_ == nullptr) return {};
    for (const auto& [name, setting] : table_->entries) {
      if (asked_.contains(name)) continue;
      return usage_error(fmt::format("{}:{}: nothing is called {} here; there are {}", file_,
                                     setting.line, named(name), fmt::join(asked_, ", ")));
    }
    return {};
  }

  std::string place() const {
    return table_ == nullptr ? file_ : fmt::format("{}:{}", file_, table_->line);
  }

 private:
  std::string named(const std::string& key) const {
    return name_.empty() ? key : name_ + "." + key;
  }
  tl::unexpected<Error> wants(const ConfigNode& at, const std::string& key,
                              std::string_view what) const {
    return usage_error(fmt::format("{}:{}: {} wants {}", file_, at.line, named(key), what));
  }

  std::string file_;
  std::string name_;
  const ConfigNode* table_;  // nullptr: it is not there
  std::set<std::string> asked_;
};

// What may come out otherwise the next time.
std::vector<std::string> usual_error_configs() {
  std::vector<std::string> files;
  for (const OutcomeInfo& outcome : kOutcomes) {
    if (outcome.failed && outcome.outcome != Outcome::invalid) files.emplace_back(outcome.log);
  }
  return files;
}

// The file of failures that assay writes for one of engineV4's.
std::string our_error_config(const std::string& file) {
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
  const std::string name = error_name(file);
  for (const auto& [other, outcome] : kOthers) {
    if (other == name) return std::string(info(outcome).log);
  }
  return file;
}

std::filesystem::path usual_pid_file(const std::string& name) {
  std::string safe = name;
  for (char& c : safe) {
    const bool harmless = static_cast<unsigned char>(c) >= 0x80 || c == '.' || c == '_' ||
                          c == '-' || std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!harmless) c = '_';
  }
  return std::filesystem::path(".run") / (safe + ".pid");
}

Status read_runner(const std::string& file, Section& root, Campaign& campaign) {
  ASSAY_TRY(Section runner, Section::open(file, root, "runner"));
  std::string engine;
  std::string pid_file;
  ASSAY_CHECK(runner.read("engine", engine));
  ASSAY_CHECK(runner.read("foreground", campaign.foreground));
  ASSAY_CHECK(runner.read("dry_run", campaign.dry_run));
  ASSAY_CHECK(runner.read("pid_file", pid_file));
  if (!pid_file.empty()) campaign.pid_file = pid_file;
  return runner.refuse_others();
}

Status read_input(const std::string& file, Section& root, Campaign& campaign) {
  constexpr std::array<const char*, 3> kInputs{"api_config", "api_config_file",
                                               "api_config_file_pattern"};
  ASSAY_TRY(Section input, Section::open(file, root, "input"));
  for (const char* name : kInputs) {
    std::string value;
    ASSAY_CHECK(input.read(name, value));
    if (value.empty()) continue;
    if (!campaign.input.empty()) {
      return usage_error(
          fmt::format("{}: input wants one of {}", input.place(), fmt::join(kInputs, ", ")));
    }
    campaign.input = name;
    campaign.input_value = value;
  }
  return input.refuse_others();
}

Status read_retest(const std::string& file, Section& root, Retest& retest) {
  ASSAY_TRY(Section table, Section::open(file, root, "retest"));
  ASSAY_CHECK(table.read("enabled", retest.enabled));
  ASSAY_CHECK(table.read("rounds", 1, retest.rounds));
  std::vector<std::string> error_configs;
  ASSAY_CHECK(table.read("error_configs", error_configs));
  for (const std::string& each : error_configs) {
    const std::string ours = our_error_config(each);
    const auto begin = retest.error_configs.begin();
    const auto end = retest.error_configs.end();
    if (std::find(begin, end, ours) == end) retest.error_configs.push_back(ours);
  }
  if (retest.error_configs.empty()) retest.error_configs = usual_error_configs();
  ASSAY_CHECK(table.read("log_dir_template", retest.log_dir_template));
  for (const char* name : {"skip_empty", "skip_missing", "skip_unavailable"}) {
    ASSAY_CHECK(table.read(name, retest.skip_unavailable));
  }
  return table.refuse_others();
}

Status read_tables(const std::string& file, Section& root, Campaign& campaign) {
  ASSAY_CHECK(root.read("name", campaign.name));
  campaign.pid_file = usual_pid_file(campaign.name);
  ASSAY_CHECK(read_runner(file, root, campaign));
  ASSAY_CHECK(read_input(file, root, campaign));
  ASSAY_CHECK(read_retest(file, root, campaign.retest));
  ASSAY_TRY(Section output, Section::open(file, root, "output"));
  ASSAY_CHECK(output.read("log_dir", campaign.log_dir));
  ASSAY_CHECK(output.refuse_others());
  ASSAY_TRY(Section environment, Section::open(file, root, "env"));
  ASSAY_CHECK(environment.each_scalar([&](const std::string& name, const ConfigNode& value) {
    campaign.environment.emplace_back(name, expanded(value.text));
  }));
  ASSAY_TRY(Section arguments, Section::open(file, root, "engine_args"));
  ASSAY_CHECK(arguments.each_scalar([&](const std::string& name, const ConfigNode& value) {
    campaign.engine_args.push_back(
        {name, expanded(value.text), fmt::format("{}:{}", file, value.line)});
  }));
  return root.refuse_others();
}

}  // namespace

Result<Campaign> read_campaign(const std::filesystem::path& file) {
  const std::string where = file.string();
  const std::string kind = file.extension().string();
  if (kind != ".toml" && kind != ".yaml" && kind != ".yml") {
    return usage_error(where + ": a campaign is a file .toml, .yaml or .yml");
  }
  auto text = read_file(file);
  if (!text) return usage_error(text.error().message);
  ASSAY_TRY(const ConfigNode tree,
            kind == ".toml" ? toml_tree(*text, where) : yaml_tree(*text, where));
  if (tree.kind != Kind::table) return usage_error(where + ": a campaign is a table");
  Section root(where, "", &tree);
  Campaign campaign;
  campaign.name = file.stem().string();
  if (kind == ".toml") {
    std::int64_t version = 0;
    ASSAY_CHECK(root.read("version", 0, version));
    if (version != 1) return usage_error(where + ": version = 1 is wanted");
  }
  ASSAY_CHECK(read_tables(where, root, campaign));
  return campaign;
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
  const std::array<std::pair<std::string_view, std::string>, 5> known{{
      {"base_log_dir", plain(campaign.log_dir)},
      {"previous_log_dir", plain(previous)},
      {"round", fmt::format("{}", round)},
      {"error_config", std::filesystem::path(error_config).filename().string()},
      {"error_name", error_name(error_config)},
  }};
  std::string folder;
  std::string_view rest = campaign.retest.log_dir_template;
  while (true) {
    const std::size_t open = rest.find('{');
    folder += rest.substr(0, open);
    if (open == std::string_view::npos) return folder;
    const std::size_t close = rest.find('}', open);
    const std::string_view name = rest.substr(open + 1, close - open - 1);
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const auto& each) { return each.first == name; });
    if (found == known.end() || close == std::string_view::npos) {
      return usage_error(fmt::format("retest.log_dir_template: nothing is called {{{}}}", name));
    }
    folder += found->second;
    rest.remove_prefix(close + 1);
  }
}

}  // namespace assay
