#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "campaign/units.h"

namespace assay::campaign {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kProgressVersion = 1;
constexpr int kAnotherBuildCode = 5;  // of `assay api`

// The first of DIR_build2, DIR_build3, … that does not exist.
std::string unused_folder(fs::path folder) {
  if (!folder.has_filename()) folder = folder.parent_path();
  std::error_code ignored;
  for (int build = 2;; ++build) {
    std::string unused = fmt::format("{}_build{}", folder.string(), build);
    if (!fs::exists(unused, ignored)) return unused;
  }
}

// Round after round, each by the failures of an earlier one. campaign.json in the campaign's folder
// records them.
class Rounds : public Units {
 public:
  Rounds(const Campaign& campaign, Program program)
      : campaign_(campaign), base_(campaign), program_(std::move(program)) {
    const auto text = read_file(progress_file());
    const json earlier = text ? parse_json(*text) : json();
    if (earlier.is_object() && earlier.value("version", 0) == kProgressVersion) earlier_ = earlier;
  }

  std::string commands() const override {
    std::string text = shell_line(words_of(first_round())) + "\n";
    for (const auto& [name, value] : campaign_.environment) {
      text += fmt::format("  {}={}\n", name, value);
    }
    if (!campaign_.retest.enabled) return text;
    for (const std::string& file : campaign_.retest.error_configs) {
      text += fmt::format("then {} more rounds for the cases in {}\n", campaign_.retest.rounds - 1,
                          file);
    }
    return text;
  }

  std::string progress(bool running) const override {
    std::string text;
    if (!earlier_.is_object()) return text;
    for (const json& round : earlier_.at("rounds")) {
      const std::int64_t began = round.value("began_ms", std::int64_t{0});
      const std::int64_t until = round.value("ended_ms", wall_ms());
      text += fmt::format("  {}: {}, {}, {}\n", round.value("label", ""),
                          round.value("ended", running ? "runs" : "was cut off"),
                          duration(static_cast<double>(until - began) / 1000),
                          round.value("log_dir", ""));
    }
    return text;
  }

  bool has_lifeline() const override { return false; }

  // The first round: in the folder of the last time.
  Result<std::vector<Unit>> first() override {
    progress_ = {
        {"version", kProgressVersion}, {"name", campaign_.name}, {"rounds", json::array()}};
    if (earlier_.is_object()) {
      base_.log_dir = earlier_.value("folder", base_.log_dir.string());
    }
    return unit(first_round());
  }

  Result<std::vector<std::string>> start(std::size_t /*unit*/, const Seat& /*seat*/) override {
    std::vector<std::string> words = words_of(round_);
    program_.say(fmt::format("{}: {}\n", round_.label, shell_line(words)));
    progress_["rounds"].push_back(
        {{"label", round_.label}, {"log_dir", round_.folder}, {"began_ms", wall_ms()}});
    progress_["folder"] = base_.log_dir.string();
    ASSAY_CHECK(keep_progress());
    return words;
  }

  Result<std::vector<Unit>> end(const UnitEnd& end) override {
    json& round = progress_["rounds"].back();
    round["ended_ms"] = wall_ms();
    round["ended"] = end.exit.describe();
    ASSAY_CHECK(keep_progress());
    program_.say(fmt::format("{}: {}\n", round_.label, end.exit.describe()));
    worst_ = std::max(worst_, end.exit.signal != 0 ? kTroubleCode : end.exit.code);
    if (end.state == "not_run") return std::vector<Unit>();
    const bool first = progress_["rounds"].size() == 1;
    if (!first || worst_ != kAnotherBuildCode) return next();
    worst_ = 0;
    base_.log_dir = unused_folder(campaign_.log_dir);
    program_.say(fmt::format("this build gets a folder of its own, {}\n", base_.log_dir.string()));
    return unit(first_round());
  }

  Result<int> finish(std::vector<UnitEnd> /*ends*/, bool interrupted) override {
    return interrupted ? kInterruptedCode : worst_;
  }

 private:
  struct Round {
    std::string label;
    std::string input;  // a flag
    std::string value;
    std::string folder;
  };

  Round first_round() const {
    return {"round 1/base", base_.input, base_.input_value, base_.log_dir.string()};
  }

  std::vector<Unit> unit(Round round) {
    round_ = std::move(round);
    return {{round_.label, "", {}}};
  }

  // The next round of this file of failures, or the second one of the next file that has any.
  Result<std::vector<Unit>> next() {
    const Retest& retest = campaign_.retest;
    if (!retest.enabled || worst_ > kSomeFailedCode) return std::vector<Unit>();
    for (; file_ < retest.error_configs.size(); ++file_, number_ = 1) {
      if (++number_ > retest.rounds) continue;
      const std::string& file = retest.error_configs[file_];
      const std::string previous = number_ == 2 ? base_.log_dir.string() : round_.folder;
      const fs::path input = fs::path(previous) / file;
      ASSAY_TRY(const bool there, has_failures(input));
      if (!there) continue;
      ASSAY_TRY(const std::string folder, retest_folder(base_, previous, number_, file));
      return unit({fmt::format("round {}/{}", number_, error_name(file)), "api_config_file",
                   input.string(), folder});
    }
    return std::vector<Unit>();
  }

  Result<bool> has_failures(const fs::path& file) {
    std::error_code error;
    const auto size = fs::file_size(file, error);
    if (!error && size > 0) return true;
    if (campaign_.retest.skip_unavailable) {
      program_.say(fmt::format("nothing to retest in {}\n", file.string()));
      return false;
    }
    return usage_error(fmt::format("{} {} (retest.skip_unavailable is false)", file.string(),
                                   error ? "is missing" : "is empty"));
  }

  std::vector<std::string> words_of(const Round& round) const {
    std::vector<std::string> words{program_.self, "api",
                                   fmt::format("--{}={}", round.input, round.value),
                                   "--log_dir=" + round.folder};
    for (const EngineArgument& argument : campaign_.engine_args) {
      words.push_back(fmt::format("--{}={}", argument.name, argument.value));
    }
    words.insert(words.end(), program_.arguments.begin(), program_.arguments.end());
    return words;
  }

  fs::path progress_file() const { return campaign_.log_dir / "campaign.json"; }
  Status keep_progress() { return write_file(progress_file(), progress_.dump(1) + "\n"); }

  const Campaign& campaign_;
  Campaign base_;  // the same with the folder of the first round
  Program program_;
  json earlier_;  // campaign.json of the last time; null: there is none
  json progress_;
  Round round_;              // the latest
  std::size_t file_ = 0;     // of error_configs
  std::int64_t number_ = 1;  // of its latest round
  int worst_ = 0;
};

}  // namespace

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::unique_ptr<Units> rounds_of(const Campaign& campaign, const Program& program) {
  return std::make_unique<Rounds>(campaign, program);
}

Result<std::string> retest_folder(const Campaign& campaign, const std::string& previous,
                                  std::int64_t round, const std::string& error_config) {
  const auto plain = [](std::string folder) {
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    return folder;
  };
  const std::string& text = campaign.retest.log_dir_template;
  try {
    return fmt::format(fmt::runtime(text),
                       fmt::arg("base_log_dir", plain(campaign.log_dir.string())),
                       fmt::arg("previous_log_dir", plain(previous)), fmt::arg("round", round),
                       fmt::arg("error_config", fs::path(error_config).filename().string()),
                       fmt::arg("error_name", error_name(error_config)));
  } catch (const fmt::format_error& error) {
    return usage_error(
        fmt::format("retest.log_dir_template: cannot fill in {}: {}", text, error.what()));
  }
}

}  // namespace assay::campaign
