#include "timeline/serving.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>
#include <unordered_map>

namespace assay::timeline {
namespace {

// The number behind a word; 0 without one.
std::int64_t number_behind(std::string_view name, std::string_view word) {
  const std::size_t at = name.find(word);
  if (at == std::string_view::npos) return 0;
  std::int64_t number = 0;
  std::from_chars(name.data() + at + word.size(), name.data() + name.size(), number);
  return number;
}

// Of "context_2(6144)_…" and "context_2(sq6144sk7144…)_…": requests and tokens.
std::pair<std::int64_t, std::int64_t> counts_behind(std::string_view name, std::string_view word) {
  const std::string_view rest = name.substr(std::min(name.size(), name.find(word)));
  const std::string_view tokens = rest.substr(std::min(rest.size(), rest.find('(')));
  const std::int64_t detailed = number_behind(tokens.substr(0, tokens.find(')')), "(sq");
  return {number_behind(rest, word), detailed > 0 ? detailed : number_behind(tokens, "(")};
}

}  // namespace

std::optional<ServingBatch> parse_serving_batch(std::string_view name) {
  const auto has = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  ServingBatch batch;
  if (name.starts_with("execute_") && has("context_") && has("generation_")) {
    std::tie(batch.prefills, batch.prefill_tokens) = counts_behind(name, "context_");
    std::tie(batch.decodes, batch.decode_tokens) = counts_behind(name, "generation_");
  } else if (name.starts_with("execute_new_") && has("_cached_")) {
    batch.prefills = number_behind(name, "_new_");
    batch.decodes = batch.decode_tokens = number_behind(name, "_cached_");
  } else if (const bool step = name.starts_with("step[");
             has("bs=") && has("]") &&
             (step || name.starts_with("prefill[") || name.starts_with("decode["))) {
    const std::int64_t size = number_behind(name, "bs=");
    const std::int64_t tokens = number_behind(name, step ? "toks=" : "tok=");
    if (step && has(" c=") && has(" g=")) {  // SGLang's MIXED, with details
      batch = {number_behind(name, " c="), number_behind(name, "c_sq="), number_behind(name, " g="),
               number_behind(name, "g_sq=")};
    } else if (has("DECODE") || name.starts_with("decode[")) {
      batch.decodes = size;
      batch.decode_tokens = std::max({size, tokens, number_behind(name, "g_sq=")});
    } else {
      batch.prefills = size;
      batch.prefill_tokens = tokens;
    }
  } else {
    return std::nullopt;
  }
  return batch.prefills + batch.decodes > 0 ? std::optional(batch) : std::nullopt;
}

std::vector<ServingStep> serving_steps(const Trace& trace) {
  std::unordered_map<StringId, std::optional<ServingBatch>> parsed;
  std::vector<ServingStep> steps;
  for (const Slice& slice : trace.slices) {
    const Track& track = trace.tracks[slice.track];
    if (track.gpu || track.jobs) continue;
    const auto [entry, is_new] = parsed.try_emplace(slice.name);
    if (is_new) entry->second = parse_serving_batch(trace.strings.text(slice.name));
    if (entry->second)
      steps.push_back({{track.source, {0, slice.begin, slice.end}}, *entry->second});
  }
  std::ranges::sort(steps, {}, [](const ServingStep& one) {
    return std::tuple(one.mark.source, one.mark.step.begin, -one.mark.step.end);
  });
  std::vector<ServingStep> outer;
  for (const ServingStep& one : steps) {
    const bool same = !outer.empty() && outer.back().mark.source == one.mark.source;
    if (same && one.mark.step.begin < outer.back().mark.step.end) continue;
    outer.push_back(one);
    outer.back().mark.step.number = same ? std::prev(outer.end(), 2)->mark.step.number + 1 : 0;
  }
  return outer;
}

std::map<std::int64_t, ServingBatch> serving_batches(const Trace& trace) {
  std::set<std::tuple<std::uint32_t, std::int64_t, Nanos>> marks;
  for (const RankStep& mark : trace.rank_steps) {
    marks.emplace(mark.source, mark.step.number, mark.step.begin);
  }
  std::map<std::int64_t, ServingBatch> batches;
  for (const auto& [mark, batch] : serving_steps(trace)) {
    if (!marks.contains({mark.source, mark.step.number, mark.step.begin})) return {};
    batches.try_emplace(mark.step.number, batch);
  }
  return batches;
}

}  // namespace assay::timeline
