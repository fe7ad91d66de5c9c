#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/text.h"
#include "campaign/remote.h"
#include "campaign/units.h"
#include "chain/fleet/fleet.h"

namespace assay::campaign {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A model's folder below the campaign's: its path without "..", and its mode.
fs::path folder_of(const Model& model) {
  fs::path folder = "models";
  for (const fs::path& part : fs::path(model.file).lexically_normal().relative_path()) {
    folder /= part == ".." ? fs::path("up") : part;
  }
  folder.replace_extension();
  return model.mode.empty() ? folder : folder / model.mode;
}

// Each model by an `assay chain run`. A second campaign in the same folder keeps the stages that
// passed with the same identity.
class Models : public Units {
 public:
  Models(const Campaign& campaign, Program program)
      : campaign_(campaign),
        program_(std::move(program)),
        history_file_(fs::path(".run") / (campaign.name + ".history.json")) {}

  std::string commands() const override {
    std::string text;
    for (const Model& model : campaign_.models) {
      std::vector<std::string> words = words_of(model, campaign_.seats.front());
      words.insert(words.begin(), {program_.self, "chain"});
      text += shell_line(words) + "\n";
    }
    return text + size();
  }

  std::string progress(bool /*running*/) const override {
    int all = 0;
    std::string text;
    for (const auto& [state, count] : count_ends(campaign_.log_dir)) {
      all += count;
      text += fmt::format("{} {} {}", text.empty() ? ":" : ",", count, state);
    }
    return fmt::format("  {} of {} ended{}\n", all, count_of(campaign_.models.size(), "model"),
                       text);
  }

  bool has_lifeline() const override { return true; }

  // Models in quarantine run last.
  Result<std::vector<Unit>> first() override {
    program_.say(size());
    ASSAY_TRY(known_, read_known(campaign_.known));
    history_ = read_history(history_file_);
    std::vector<Unit> units;
    for (const Model& model : campaign_.models) {
      const Past past = history_[model.key()];
      const bool last = campaign_.quarantine > 0 && past.failed >= campaign_.quarantine;
      units.push_back(
          {model.key(), folder_of(model) / "model.log", {model.group, past.seconds, last}});
    }
    ASSAY_CHECK(begin_ends(campaign_.log_dir));
    return units;
  }

  Result<std::vector<std::string>> start(std::size_t unit, const Seat& seat) override {
    const bool here = seat.command.empty();
    std::vector<std::string> words =
        remote_words(campaign_.limits.lost, words_of(campaign_.models[unit], seat));
    words.insert(words.begin(),
                 here || campaign_.program.empty() ? program_.self : campaign_.program);
    if (here) return words;
    return chain::fleet::remote_command(seat.command, seat.host, words);
  }

  Result<std::vector<Unit>> end(const UnitEnd& end) override {
    if (end.state == "not_run") return std::vector<Unit>();
    program_.say(one_line(fmt::format("{} {} {:.1f} s{}{} [{}/{}]", end.state, end.key, end.seconds,
                                      end.host.empty() ? "" : " on ", end.host, ++ended_,
                                      campaign_.models.size())) +
                 "\n");
    ASSAY_CHECK(append_end(campaign_.log_dir, end));
    return std::vector<Unit>();
  }

  Result<int> finish(std::vector<UnitEnd> ends, bool interrupted) override {
    Findings findings = judged(std::move(ends), known_);
    findings.interrupted = interrupted;
    ASSAY_CHECK(write_results(findings));
    if (!interrupted) {
      ASSAY_CHECK(write_history(history_file_, std::move(history_), findings.models));
    }
    program_.say(matrix_text(findings, false));
    program_.say(fmt::format("results: {}\n", (campaign_.log_dir / "index.html").string()));
    if (interrupted) return kInterruptedCode;
    if (findings.count("not_run") > 0) return kTroubleCode;  // no host is left
    return findings.new_failures() > 0 ? kSomeFailedCode : 0;
  }

 private:
  std::string size() const {
    return fmt::format("{} on {}\n", count_of(campaign_.models.size(), "model"),
                       count_of(campaign_.seats.size(), "seat"));
  }

  // The words of `assay chain run` for a model, after `assay chain`.
  std::vector<std::string> words_of(const Model& model, const Seat& seat) const {
    std::error_code error;
    const fs::path folder = fs::absolute(campaign_.log_dir / folder_of(model), error);
    std::vector<std::string> words{"run", model.file};
    if (!model.mode.empty()) words.push_back(model.mode);
    words.insert(words.end(), {"-C", fs::canonical(campaign_.directory, error).string(), "--store",
                               (folder / "chain.db").string(), "--output-root", folder.string(),
                               "--resume", "--report-line"});
    const auto add = [&](const char* flag, const std::string& value) {
      if (!value.empty()) words.insert(words.end(), {flag, value});
    };
    const auto number = [](double value) {
      return value < 0 ? std::string() : fmt::format("{:g}", value);
    };
    add("--gpus", seat.gpus);
    add("--stage-limit", number(campaign_.limits.stage));
    add("--idle-limit", number(campaign_.limits.idle));
    words.insert(words.end(), campaign_.flags.begin(), campaign_.flags.end());
    return words;
  }

  Status write_results(const Findings& findings) const {
    const std::string& name = campaign_.name;
    ASSAY_TRY(const std::string page, html(name, findings));
    const std::string report = dumped(json_report(name, findings), 1);
    for (const auto& [file, text] :
         {std::pair<const char*, std::string>{"matrix.txt", matrix_text(findings, true)},
          {"campaign.json", report},
          {"junit.xml", junit(name, findings)},
          {"summary.md", markdown(name, findings)},
          {"index.html", page},
          {"known.toml", known_text(findings.failures)}}) {
      ASSAY_CHECK(write_file(campaign_.log_dir / file, text));
    }
    return {};
  }

  const Campaign& campaign_;
  Program program_;
  fs::path history_file_;
  History history_;
  std::vector<Failure> known_;
  std::size_t ended_ = 0;
};

}  // namespace

std::unique_ptr<Units> units_of(const Campaign& campaign, const Program& program) {
  if (campaign.models.empty()) return rounds_of(campaign, program);
  return std::make_unique<Models>(campaign, program);
}

}  // namespace assay::campaign
