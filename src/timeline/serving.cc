#include "timeline/serving.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>

#include "base/text.h"
#include "timeline/names.h"

namespace assay::timeline {
namespace {

std::int64_t count_behind(std::string_view name, std::string_view word) {
  return number_behind(name, word, std::int64_t{0});
}

// Of "context_2(6144)_…" and "context_2(sq6144sk7144…)_…": requests and tokens.
std::pair<std::int64_t, std::int64_t> counts_behind(std::string_view name, std::string_view word) {
  const std::string_view rest = name.substr(std::min(name.size(), name.find(word)));
  const std::string_view tokens = rest.substr(std::min(rest.size(), rest.find('(')));
  const std::int64_t detailed = count_behind(tokens.substr(0, tokens.find(')')), "(sq");
  return {count_behind(rest, word), detailed > 0 ? detailed : count_behind(tokens, "(")};
}

ServingBatch batch_of(std::int64_t prefills, std::int64_t prefill_tokens, std::int64_t decodes,
                      std::int64_t decode_tokens) {
  ServingBatch batch{ServingBatch::kMixed, prefills + decodes, prefill_tokens, decode_tokens};
  if (decodes == 0) batch.phase = ServingBatch::kPrefill;
  if (prefills == 0) batch.phase = ServingBatch::kDecode;
  if (prefills > 0 && prefill_tokens == 0) batch.prefill_tokens = kNone;
  return batch;
}

// "step[EXTEND bs=2 toks=6144]", "prefill[bs=2 tok=6144]", "decode[bs=4 tok=6 p=1 d=3]".
ServingBatch batch_in_brackets(std::string_view name) {
  const bool step = name.starts_with("step[");
  const std::size_t open = name.find('[');
  const std::string mode =
      lowered(step ? name.substr(open + 1, name.find(' ') - open - 1) : name.substr(0, open));
  const std::int64_t size = count_behind(name, "bs=");
  const std::int64_t tokens = count_behind(name, step ? "toks=" : "tok=");
  if (has(name, " c=") && has(name, " g=")) {  // SGLang's MIXED, with details
    return batch_of(count_behind(name, " c="), count_behind(name, "c_sq="),
                    count_behind(name, " g="), count_behind(name, "g_sq="));
  }
  if (mode == "mixed" || (mode == "decode" && count_behind(name, " p=") > 0)) {
    return {ServingBatch::kMixed, size};
  }
  if (mode == "extend" || mode.ends_with("prefill")) return batch_of(size, tokens, 0, 0);
  // The draft model's tokens are none until the target model has verified them.
  if (mode.starts_with("draft")) return batch_of(0, 0, size, 0);
  if (mode != "decode" && mode != "target_verify") return {ServingBatch::kUnknown, size};
  return batch_of(0, 0, size, std::max({size, tokens, count_behind(name, "g_sq=")}));
}

// What the attention kernels of a batch say of its phase. Most attention kernels serve both.
enum Sign : unsigned { kNoSign = 0, kOfDecode = 1, kOfPrefill = 2, kOfBoth = 4 };

Sign sign_of(std::string_view kernel) {
  const std::string name = lowered(kernel);
  const bool cache =
      has_any(name, {"and_cache", "store_kv", "kv_indices", "append", "unified_attention_2d"});
  if (cache || !has_any(name, {"attn", "attention", "mha", "mla", "flash_fwd", "kvcache",
                               "fwd_kernel", "fwd_grouped"})) {
    return kNoSign;
  }
  if (has_any(name,
              {"paged_attention", "decode", "forgen", "unified_attention_3d", "kernel_stage"})) {
    return kOfDecode;
  }
  return has_any(name, {"persistentcontext", "staticcontext"}) ? kOfPrefill : kOfBoth;
}

// Names the phase of a batch if its attention kernels serve one phase only.
void ask_kernels(const Trace& trace, std::vector<ServingStep>& steps) {
  std::vector<unsigned> signs(steps.size());
  std::unordered_map<StringId, Sign> known;
  const auto untold = [](const ServingStep& one) {
    return one.batch.phase == ServingBatch::kUnknown;
  };
  if (std::ranges::none_of(steps, untold)) return;
  for (const Slice& slice : trace.slices) {
    const Launch* launch = trace.tracks[slice.track].gpu ? trace.launch_of(slice) : nullptr;
    if (launch == nullptr) continue;
    const auto key = std::pair(trace.tracks[slice.track].source, launch->begin);
    const auto after = std::ranges::upper_bound(steps, key, {}, [](const ServingStep& one) {
      return std::pair(one.mark.source, one.mark.step.begin);
    });
    if (after == steps.begin() || std::prev(after)->mark.source != key.first) continue;
    const auto [sign, is_new] = known.try_emplace(slice.name);
    if (is_new) sign->second = sign_of(trace.strings.text(slice.name));
    signs[static_cast<std::size_t>(after - steps.begin()) - 1] |= sign->second;
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!untold(steps[i])) continue;
    std::string_view& phase = steps[i].batch.phase;
    if (signs[i] == kOfDecode) phase = ServingBatch::kDecode;
    if (signs[i] == kOfPrefill) phase = ServingBatch::kPrefill;
    if (signs[i] == (kOfDecode | kOfPrefill)) phase = ServingBatch::kMixed;
  }
}

// The last functions of Python's frames around a batch; the last two in traces whose forward_extend
// is not only for prompts.
constexpr std::array<std::string_view, 6> kFrames{"): execute_model",    "): forward_decode",
                                                  "): forward_extend",   "): replay",
                                                  "): mix_with_running", "): verify"};

// Parses what runs a batch in traces without ranges for it, and tells no sizes: vLLM's range
// "gpu_model_runner: forward" and the Python frames "…/gpu_model_runner.py(3200): execute_model",
// "…/model_runner.py(9): forward_extend", "…/cuda_graph_runner.py(9): replay".
std::optional<ServingBatch> parse_serving_frame(std::string_view name) {
  if (name == "gpu_model_runner: forward") return ServingBatch{};
  if (!is_serving_frame(name)) return std::nullopt;
  const std::size_t end = name.rfind("): ");
  const std::size_t slash = name.rfind('/', end);
  const std::string_view file = name.substr(slash + 1, end - slash - 1);
  const std::string_view function = name.substr(end + 3);
  if (file.starts_with("cuda_graph_runner.py") && function == "replay") {
    return ServingBatch{ServingBatch::kDecode};
  }
  if (!has(file, "model_runner")) return std::nullopt;
  if (function == "forward_decode") return ServingBatch{ServingBatch::kDecode};
  if (function == "forward_extend") return ServingBatch{ServingBatch::kPrefill};
  return function == "execute_model" ? std::optional(ServingBatch{}) : std::nullopt;
}

// Whether SGLang also decodes in forward_extend: with mixed chunks, and to verify drafts.
bool extends_decode(const Trace& trace) {
  for (StringId id = 0; id < trace.strings.size(); ++id) {
    const std::string_view name = trace.strings.text(id);
    if (name.ends_with(kFrames[4]) || name.ends_with(kFrames[5])) return true;
  }
  return false;
}

template <typename Parse>
std::vector<ServingStep> marked(const Trace& trace, Parse parse) {
  std::unordered_map<StringId, std::optional<ServingBatch>> parsed;
  std::vector<ServingStep> steps;
  const auto take = [&](const auto& event) {
    const Track& track = trace.tracks[event.track];
    if (track.gpu || track.jobs) return;
    const auto [entry, is_new] = parsed.try_emplace(event.name);
    if (is_new) entry->second = parse(trace.strings.text(event.name));
    if (!entry->second) return;
    steps.push_back({{track.source, {0, event.begin, event.end}}, *entry->second});
  };
  for (const Slice& slice : trace.slices) take(slice);
  for (const HostCall& call : trace.host_calls) take(call);
  return steps;
}

}  // namespace

std::optional<ServingBatch> parse_serving_batch(std::string_view name) {
  ServingBatch batch;
  if (name.starts_with("execute_") && has(name, "context_") && has(name, "generation_")) {
    const auto [prefills, prefill_tokens] = counts_behind(name, "context_");
    const auto [decodes, decode_tokens] = counts_behind(name, "generation_");
    batch = batch_of(prefills, prefill_tokens, decodes, decode_tokens);
  } else if (name.starts_with("execute_new_") && has(name, "_cached_")) {
    // A running request decodes, or computes the next chunk of a long prompt.
    const std::int64_t running = count_behind(name, "_cached_");
    batch.requests = count_behind(name, "_new_") + running;
    if (running == 0) batch.phase = ServingBatch::kPrefill;
  } else if (const std::size_t at = name.find(" ctx reqs, "); at != std::string_view::npos) {
    // TensorRT-LLM: "[Executor] _forward_step 7: 2 ctx reqs, 3 gen reqs"
    const std::int64_t decodes = count_behind(name, " ctx reqs, ");
    batch = batch_of(count_behind(name.substr(name.rfind(' ', at - 1)), " "), 0, decodes, decodes);
  } else if (has(name, "bs=") && has(name, "]") &&
             (name.starts_with("step[") || name.starts_with("prefill[") ||
              name.starts_with("decode["))) {
    batch = batch_in_brackets(name);
  }
  return batch.requests > 0 ? std::optional(batch) : std::nullopt;
}

bool is_serving_frame(std::string_view name) {
  return std::ranges::any_of(kFrames, [&](std::string_view end) { return name.ends_with(end); });
}

std::vector<ServingStep> serving_steps(const Trace& trace) {
  std::vector<ServingStep> steps = marked(trace, parse_serving_batch);
  if (steps.empty()) {
    steps = marked(trace, parse_serving_frame);
    if (extends_decode(trace)) {
      for (ServingStep& one : steps) {
        if (one.batch.phase == ServingBatch::kPrefill) one.batch.phase = ServingBatch::kUnknown;
      }
    }
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
  ask_kernels(trace, outer);
  return outer;
}

}  // namespace assay::timeline
