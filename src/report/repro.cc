#include "report/repro.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "case/canonical.h"
#include "case/parser.h"
#include "fill/fill.h"
#include "report/inputs.h"
#include "report/issue.h"
#include "report/run_report.h"
#include "report/scripts.h"
#include "wire/messages_generated.h"

namespace assay {
namespace {

constexpr std::size_t kShownMatches = 5;
constexpr mode_t kFileMode = 0644;

// Whether the words name this case exactly, partly, or not.
enum class Match { no, part, whole };

Match match(std::uint64_t id, std::string_view text, std::string_view wanted) {
  const std::string hex = format_case_id(id);
  if (hex == wanted || text == wanted) return Match::whole;
  const bool part = hex.starts_with(wanted) || text.find(wanted) != std::string_view::npos;
  return part ? Match::part : Match::no;
}

// Collects the cases that match. An exact match ends the search.
class Chooser {
 public:
  explicit Chooser(std::string_view wanted) : wanted_(wanted) {}

  // Whether this case is the best match so far.
  bool offer(std::uint64_t id, std::string_view text) {
    const Match matched = match(id, text, wanted_);
    if (matched == Match::no || best_ == Match::whole) return false;
    if (matched == Match::whole) shown_.clear();
    if (matched > best_) count_ = 0;
    best_ = matched;
    if (++count_ <= kShownMatches)
      shown_.push_back(fmt::format("  {}  {}", format_case_id(id), text));
    return true;
  }

  Status check() const {
    if (count_ == 0) {
      return usage_error(
          fmt::format("no case of the run has the id or text {}; report.html and "
                      "log_inorder.log list the ids",
                      wanted_));
    }
    if (count_ == 1) return {};
    return usage_error(fmt::format("{} cases match {}; give the id of one:\n{}{}", count_, wanted_,
                                   fmt::join(shown_, "\n"), count_ > kShownMatches ? "\n  …" : ""));
  }

 private:
  std::string_view wanted_;
  Match best_ = Match::no;
  std::size_t count_ = 0;
  std::vector<std::string> shown_;
};

std::string input_file(std::size_t ordinal) { return fmt::format("x{}.bin", ordinal); }

// Writes the tensor's elements into a mapped file, and returns their checksum.
Result<std::uint64_t> write_input(const std::filesystem::path& file, const TensorSpec& spec,
                                  const wire::Filling* filling, const FillKey& key) {
  const std::uint64_t bytes = spec.bytes();
  if (bytes > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) {
    return usage_error(fmt::format("{}: a tensor of {} elements does not fit on any disk",
                                   file.string(), spec.elements()));
  }
  ::unlink(file.c_str());
  const Fd opened(::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode));
  if (!opened) return errno_error("cannot write " + file.string());
  // Allocates the whole file first: a disk that fills up under a mapping causes a SIGBUS.
  if (bytes > 0) {
    errno = ::posix_fallocate(opened.get(), 0, static_cast<off_t>(bytes));
    if (errno != 0) return errno_error(fmt::format("{} bytes for {}", bytes, file.string()));
  }
  ASSAY_TRY(const Mapping mapping, Mapping::map(opened.get(), bytes, /*writable=*/true));
  const std::span<std::byte> memory(mapping.data(), mapping.size());
  ASSAY_CHECK(fill_again(filling, key, spec.dtype, memory));
  return checksum(memory);
}

// Writes all inputs, and notes those that may differ from what the lanes had.
Status write_inputs(const Case& parsed, const FoundCase& found, const wire::Trial& trial,
                    std::uint64_t seed, const std::filesystem::path& folder, Repro& repro) {
  for (std::size_t i = 0; i < parsed.tensor_count(); ++i) {
    const wire::Filling* filling = filling_of(trial, i);
    const FillKey key{seed, found.id, static_cast<std::uint32_t>(i)};
    ASSAY_TRY(const std::uint64_t sum,
              write_input(folder / input_file(i), parsed.tensor(i), filling, key));
    if (filling == nullptr) {
      repro.notes.push_back(
          fmt::format("{}: no lane reported how it filled this tensor; its values follow the "
                      "default of its dtype",
                      input_file(i)));
    } else if (filling->checksum() != sum) {
      repro.notes.push_back(fmt::format(
          "{}: not the values of the run (checksum {:016x}, in the run {:016x}); use the "
          "assay that made the run",
          input_file(i), sum, filling->checksum()));
    }
  }
  return {};
}

// Whether the script differentiates. It does not if both lanes found nothing to differentiate.
bool wants_backward(const wire::Trial& trial) {
  const auto* pairs = trial.pairs();
  if (pairs == nullptr || pairs->size() == 0) return true;
  return std::any_of(pairs->begin(), pairs->end(),
                     [](const wire::Pair* pair) { return pair->gradients_compared(); }) ||
         std::any_of(
             trial.lanes()->begin(), trial.lanes()->end(),
             [](const wire::LaneRecord* lane) { return lane->status() != wire::Status::ok; });
}

using Properties = std::map<std::string, std::string>;

// Writes the inputs and makes the request for the script.
Result<Repro> write_repro(const Properties& properties, const FoundCase& found,
                          const std::filesystem::path& folder, nlohmann::json& request) {
  ASSAY_TRY(const wire::Record* record, wire::open<wire::Record>(found.record));
  if (!has_lanes(*record)) return fail("the record of this case has no test lane");
  ASSAY_TRY(const std::uint64_t seed, run_seed(properties));
  Case parsed;
  if (const auto status = parse_case(found.text, parsed); !status) {
    return fail("a stored case does not parse: " + status.error().message);
  }
  ASSAY_CHECK(make_folder(folder));
  Repro repro;
  repro.script = folder / "repro.py";
  // The inputs of the value regime in which the fault was seen.
  const Fault& fault = found.verdict.fault();
  const wire::Trial& trial = trial_under(*record, fault.values);
  ASSAY_CHECK(write_inputs(parsed, found, trial, seed, folder, repro));
  ASSAY_TRY(request, script_request(properties, found, parsed, trial, fault));
  const std::string role = text_of(request, "role");
  const auto environment = properties.find(role + ".environment");
  if (environment != properties.end() && !environment->second.empty()) {
    repro.notes.push_back(one_line("the lane had this environment: " + environment->second));
  }
  std::vector<std::string> comment{
      fmt::format("case {}, seed {}", format_case_id(found.id), seed),
      fmt::format("verdict of the run: {} {}", name(found.verdict.outcome), found.verdict.message)};
  comment.insert(comment.end(), repro.notes.begin(), repro.notes.end());
  request.update({{"do", "repro"},
                  {"comment", comment},
                  {"seed", framework_seed(seed, found.id)},
                  {"backward", wants_backward(trial)}});
  return repro;
}

// Writes the script that an answer of python/assay/scripts holds.
Status write_script(const Repro& repro, const nlohmann::json& answer) {
  if (answer.contains("error")) return fail(text_of(answer, "error"));
  return write_file(repro.script, text_of(answer, "script"));
}

// The canonical text of a text that is a case; any other text as it is.
std::string canonical_if_case(std::string_view text) {
  Case parsed;
  return parse_case(text, parsed) ? canonical_text(parsed) : std::string(text);
}

Status read_record(RunReader& run, FoundCase& found) {
  return run.each({.ids = {&found.id, 1}}, [&](const FinishedCase& finished) -> Status {
    found.record.assign(finished.record.begin(), finished.record.end());
    return {};
  });
}

// Disk space for the inputs of failed tests: a case has at most kBytesOfCase, all have kBytesOfAll.
class Room {
 public:
  // Takes the room of this case; false if there is none. What does not parse takes none.
  bool take(const std::string& text) {
    Case parsed;
    if (!parse_case(text, parsed)) return true;
    const std::uint64_t bytes = parsed.total_bytes();
    if (bytes > std::min(kBytesOfCase, left_)) return false;
    left_ -= bytes;
    return true;
  }

 private:
  static constexpr std::uint64_t kBytesOfCase = std::uint64_t{1} << 30U;
  static constexpr std::uint64_t kBytesOfAll = std::uint64_t{8} << 30U;

  std::uint64_t left_ = kBytesOfAll;
};

}  // namespace

Result<FoundCase> find_planned_case(RunReader& run, std::string_view wanted) {
  if (wanted.empty()) return usage_error("give the id or the text of a case");
  const std::string canonical = canonical_if_case(wanted);
  Chooser chooser(canonical);
  FoundCase found;
  ASSAY_CHECK(run.each({.records = false}, [&](const FinishedCase& finished) -> Status {
    if (!chooser.offer(finished.id, finished.text)) return {};
    found = {finished.id, std::string(finished.text), finished.verdict,     {},
             true,        finished.attempts,          finished.finished_ms, finished.took_us};
    return {};
  }));
  ASSAY_CHECK(run.each_unfinished([&](const wire::CaseT& stored) -> Status {
    if (!chooser.offer(stored.id, stored.text)) return {};
    found = {stored.id, std::string(stored.text), {}, {}, false};
    return {};
  }));
  ASSAY_CHECK(chooser.check());
  if (found.finished) ASSAY_CHECK(read_record(run, found));
  return found;
}

Result<FoundCase> find_case(RunReader& run, std::string_view wanted) {
  ASSAY_TRY(FoundCase found, find_planned_case(run, wanted));
  if (!found.finished) {
    return usage_error("this case has not finished yet: resume the run with its --log_dir");
  }
  switch (found.verdict.outcome) {
    case Outcome::invalid:
    case Outcome::unsupported:
    case Outcome::no_golden:
    case Outcome::skip:
      return usage_error(fmt::format("this case never ran: {} ({})", name(found.verdict.outcome),
                                     found.verdict.message));
    default:
      break;
  }
  if (found.record.empty()) {
    return usage_error(
        fmt::format("this case has no record of its run: {}", found.verdict.message));
  }
  return found;
}

Result<Repro> write_repro(RunReader& run, const FoundCase& found,
                          const std::filesystem::path& folder) {
  ASSAY_TRY(const Properties properties, run.properties());
  std::vector<nlohmann::json> requests(1);
  ASSAY_TRY(Repro repro, write_repro(properties, found, folder, requests[0]));
  ASSAY_TRY(const std::vector<nlohmann::json> answers, ask_scripts(requests));
  ASSAY_CHECK(write_script(repro, answers[0]));
  return repro;
}

Status write_failed_tests(RunReader& run, const std::filesystem::path& folder,
                          const std::function<void(const std::string&)>& note) {
  Room room;
  ASSAY_TRY(const Properties properties, run.properties());
  std::vector<Repro> repros;
  std::vector<nlohmann::json> requests;
  ASSAY_CHECK(
      run.each({.rows = RunQuery::Rows::failed}, [&](const FinishedCase& finished) -> Status {
        const Verdict& verdict = finished.verdict;
        if (verdict.outcome == Outcome::invalid) return {};
        if (finished.record.empty()) return {};
        FoundCase found{finished.id, std::string(finished.text), verdict,
                        wire::Bytes(finished.record.begin(), finished.record.end())};
        std::string api(api_of(finished.text));
        std::replace(api.begin(), api.end(), '.', '_');
        const auto name = fmt::format("test_{}_{}", api, format_case_id(finished.id));
        if (!room.take(found.text)) {
          note(fmt::format("failed_tests: no room for {}; `assay repro` writes it", name));
          return {};
        }
        nlohmann::json request;
        auto repro = write_repro(properties, found, folder / "failed_tests" / name, request);
        if (!repro) {
          note("failed_tests: " + repro.error().message);
          return {};
        }
        repros.push_back(std::move(*repro));
        requests.push_back(std::move(request));
        return {};
      }));
  ASSAY_TRY(const std::vector<nlohmann::json> answers, ask_scripts(requests));
  for (std::size_t i = 0; i < repros.size(); ++i) {
    if (const auto written = write_script(repros[i], answers[i]); !written) {
      note("failed_tests: " + written.error().message);
    }
  }
  return {};
}

}  // namespace assay
