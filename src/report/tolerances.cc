#include "report/tolerances.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/atomic_file.h"
#include "base/markup.h"
#include "case/dtype.h"
#include "report/run_report.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr const char* kUsualValues = "usual";

// One tensor in two executions of a case.
struct MeasuredTensor {
  std::string_view api;
  std::string_view text;  // of the case
  std::string_view dtype;
  bool backward = false;
  const wire::LaneRecord* left = nullptr;
  const wire::LaneRecord* right = nullptr;
  const wire::Measurement* measured = nullptr;

  // NaN or infinity on one side only: no tolerance passes.
  bool passes_never() const {
    return measured->nan_left() + measured->nan_right() + measured->inf_disagree() > 0;
  }
  double max_abs() const { return passes_never() ? kNever : measured->max_abs(); }
  double max_rel() const { return passes_never() ? kNever : measured->max_rel(); }
};

using Visit = std::function<Status(const MeasuredTensor&)>;
using Comparisons = flatbuffers::Vector<flatbuffers::Offset<wire::Comparison>>;

Status visit_all(const Comparisons* comparisons, MeasuredTensor tensor, const Visit& visit) {
  if (comparisons == nullptr) return {};
  for (const wire::Comparison* comparison : *comparisons) {
    tensor.measured = comparison->measurement();
    if (tensor.measured == nullptr || comparison->left() == nullptr) continue;
    const std::uint8_t code = comparison->left()->dtype();
    if (code >= kDTypes.size()) continue;
    tensor.dtype = name(static_cast<DType>(code));
    ASSAY_CHECK(visit(tensor));
  }
  return {};
}

Status visit_trial(const wire::Trial& trial, std::string_view text, const Visit& visit) {
  const auto* lanes = trial.lanes();
  if (lanes == nullptr || trial.pairs() == nullptr) return {};
  for (const wire::Pair* pair : *trial.pairs()) {
    if (pair->left() >= lanes->size() || pair->right() >= lanes->size()) continue;
    MeasuredTensor tensor;
    tensor.api = api_of(text);
    tensor.text = text;
    tensor.left = lanes->Get(pair->left());
    tensor.right = lanes->Get(pair->right());
    ASSAY_CHECK(visit_all(pair->outputs(), tensor, visit));
    tensor.backward = true;
    ASSAY_CHECK(visit_all(pair->gradients(), tensor, visit));
  }
  return {};
}

// All tensors that were measured in the usual value regime, in all pairs of lanes.
Status each_measured(RunReader& run, const Visit& visit) {
  return run.each_finished([&](const FinishedCase& finished) -> Status {
    const auto record = wire::open<wire::Record>(finished.record);
    if (!record || (*record)->trials() == nullptr) return {};
    for (const wire::Trial* trial : *(*record)->trials()) {
      const auto* values = trial->values();
      if (values != nullptr && values->string_view() != kUsualValues) continue;
      ASSAY_CHECK(visit_trial(*trial, finished.text, visit));
    }
    return {};
  });
}

std::string_view direction(const MeasuredTensor& tensor) {
  return tensor.backward ? "backward" : "forward";
}

void add(ToleranceStats& stats, const MeasuredTensor& tensor) {
  ToleranceStat& stat =
      stats[{std::string(tensor.api), std::string(tensor.dtype), std::string(direction(tensor))}];
  const double abs = tensor.max_abs();
  const double rel = tensor.max_rel();
  stat.abs_min = stat.count == 0 ? abs : std::min(stat.abs_min, abs);
  stat.rel_min = stat.count == 0 ? rel : std::min(stat.rel_min, rel);
  stat.abs_max = std::max(stat.abs_max, abs);
  stat.rel_max = std::max(stat.rel_max, rel);
  stat.abs_sum += abs;
  stat.rel_sum += rel;
  ++stat.count;
  const auto* needed = tensor.measured->atol_needed();
  for (std::size_t i = 0; i < kRtolGrid.size(); ++i) {
    const auto place = static_cast<flatbuffers::uoffset_t>(i);
    const bool known = needed != nullptr && place < needed->size();
    const double atol = tensor.passes_never() ? kNever : known ? needed->Get(place) : abs;
    stat.atol_needed[i] = std::max(stat.atol_needed[i], atol);
  }
}

// Whether the pair has a lane of each role. Only such pairs matter for tolerances.
bool across(const MeasuredTensor& tensor) { return tensor.left->role() != tensor.right->role(); }

// How far the tensors of one API, dtype and direction are from equal bits.
struct BitwiseStat {
  std::uint64_t tensors = 0;
  std::uint64_t equal_tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t equal_elements = 0;
  std::array<std::uint64_t, kUlpBuckets> buckets{};  // elements by the bits of their distance

  void add(const wire::Measurement& measured) {
    ++tensors;
    equal_tensors += measured.bit_equal() == measured.count() ? 1 : 0;
    elements += measured.count();
    equal_elements += measured.bit_equal();
    const auto* ulps = measured.ulps();
    for (flatbuffers::uoffset_t i = 0; ulps != nullptr && i < ulps->size(); ++i) {
      if (i < buckets.size()) buckets[i] += ulps->Get(i);
    }
  }
  double share() const {
    return elements == 0 ? 1 : static_cast<double>(equal_elements) / static_cast<double>(elements);
  }
  // The distance in ulps that this share of the elements does not exceed, rounded up to 2^n - 1.
  std::uint64_t within(double part) const {
    const double wanted = part * static_cast<double>(elements);
    double seen = 0;
    for (std::size_t bits = 0; bits < buckets.size(); ++bits) {
      seen += static_cast<double>(buckets[bits]);
      if (seen >= wanted) return (std::uint64_t{1} << bits) - 1;
    }
    return elements == equal_elements ? 0 : (std::uint64_t{1} << (buckets.size() - 1)) - 1;
  }
};

std::string stat_line(const ToleranceKey& key, const ToleranceStat& stat) {
  const auto& [api, dtype, mode] = key;
  const auto count = static_cast<double>(stat.count);
  std::string line =
      fmt::format("{},{},{},{:.6e},{:.6e},{:.6e},{:.6e},{:.6e},{:.6e},{}", csv_field(api), dtype,
                  mode, stat.abs_min, stat.abs_max, stat.abs_sum / count, stat.rel_min,
                  stat.rel_max, stat.rel_sum / count, stat.count);
  for (const double atol : stat.atol_needed) line += fmt::format(",{:.6e}", atol);
  return line + "\n";
}

Status write_stats(const ToleranceStats& stats, const std::filesystem::path& file) {
  std::string text = "API,dtype,mode,abs_min,abs_max,abs_mean,rel_min,rel_max,rel_mean,count";
  for (const double rtol : kRtolGrid) text += fmt::format(",atol_at_rtol_{}", rtol);
  text += '\n';
  for (const auto& [key, stat] : stats) text += stat_line(key, stat);
  return write_file(file, text);
}

// "P1" for the test lane's first execution, "T2" for the reference lane's second. Empty in modes
// that execute a case once.
std::string run_name(const wire::LaneRecord& lane) {
  const std::string_view name = lane.name() == nullptr ? "" : lane.name()->string_view();
  const std::size_t mark = name.rfind('#');
  if (mark == std::string_view::npos) return {};
  return fmt::format("{}{}", lane.role() == wire::Role::test ? 'P' : 'T', name.substr(mark + 1));
}

}  // namespace

Result<ToleranceStats> write_tolerances(RunReader& run, const std::filesystem::path& folder) {
  ASSAY_TRY(AtomicFile out, AtomicFile::create(folder / "tol.csv"));
  ASSAY_CHECK(out.write("API,config,dtype,mode,max_abs_diff,max_rel_diff\n"));
  ToleranceStats stats;
  const auto take = [&](const MeasuredTensor& tensor) -> Status {
    if (!across(tensor)) return {};
    add(stats, tensor);
    return out.write(fmt::format("{},{},{},{},{:.6e},{:.6e}\n", csv_field(tensor.api),
                                 csv_field(tensor.text), tensor.dtype, direction(tensor),
                                 tensor.max_abs(), tensor.max_rel()));
  };
  ASSAY_CHECK(each_measured(run, take));
  ASSAY_CHECK(out.commit());
  ASSAY_CHECK(write_stats(stats, folder / "tol_stat.csv"));
  return stats;
}

Result<BitwiseShare> write_bitwise(RunReader& run, const std::filesystem::path& folder) {
  std::map<ToleranceKey, BitwiseStat> stats;
  ASSAY_CHECK(each_measured(run, [&](const MeasuredTensor& tensor) -> Status {
    if (!across(tensor)) return {};
    stats[{std::string(tensor.api), std::string(tensor.dtype), std::string(direction(tensor))}].add(
        *tensor.measured);
    return {};
  }));
  std::string text =
      "API,dtype,mode,tensors,equal_tensors,elements,equal_elements,equal_share,ulps_99_percent,"
      "ulps_max\n";
  std::map<std::string, bool> equal;
  for (const auto& [key, stat] : stats) {
    const auto& [api, dtype, mode] = key;
    const bool same = stat.equal_tensors == stat.tensors;
    const auto [place, first] = equal.emplace(api, same);
    if (!first) place->second = place->second && same;
    text += fmt::format("{},{},{},{},{},{},{},{:.9f},{},{}\n", csv_field(api), dtype, mode,
                        stat.tensors, stat.equal_tensors, stat.elements, stat.equal_elements,
                        stat.share(), stat.within(0.99), stat.within(1));
  }
  ASSAY_CHECK(write_file(folder / "bitwise.csv", text));
  BitwiseShare share;
  share.apis = equal.size();
  for (const auto& [api, same] : equal) share.equal += same ? 1 : 0;
  return share;
}

Status write_stability(RunReader& run, const std::filesystem::path& folder) {
  std::optional<AtomicFile> out;
  const auto take = [&](const MeasuredTensor& tensor) -> Status {
    const std::string left = run_name(*tensor.left);
    const std::string right = run_name(*tensor.right);
    if (left.empty() || right.empty()) return {};
    if (!out) {
      ASSAY_TRY(AtomicFile file, AtomicFile::create(folder / "stable.csv"));
      out.emplace(std::move(file));
      ASSAY_CHECK(out->write("API,config,dtype,comp,max_abs_diff,max_rel_diff\n"));
    }
    return out->write(fmt::format("{},{},{},{}{}{},{:.6e},{:.6e}\n", csv_field(tensor.api),
                                  csv_field(tensor.text), tensor.dtype, left, right,
                                  tensor.backward ? "B" : "", tensor.max_abs(), tensor.max_rel()));
  };
  ASSAY_CHECK(each_measured(run, take));
  return out ? out->commit() : Status{};
}

Result<nlohmann::json> tolerances_json(RunReader& run) {
  ToleranceStats stats;
  ASSAY_CHECK(each_measured(run, [&](const MeasuredTensor& tensor) -> Status {
    if (across(tensor)) add(stats, tensor);
    return {};
  }));
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [key, stat] : stats) {
    const auto& [api, dtype, mode] = key;
    nlohmann::json needed = nlohmann::json::array();
    for (const double atol : stat.atol_needed) needed.push_back(fmt::format("{:.2g}", atol));
    rows.push_back({api, dtype, mode, stat.count, needed});
  }
  return nlohmann::json{{"rtols", kRtolGrid}, {"rows", rows}};
}

}  // namespace assay
