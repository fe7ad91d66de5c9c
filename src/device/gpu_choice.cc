#include "device/gpu_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace assay {
namespace {

constexpr int kMostGpus = 1024;

std::optional<int> number_of(std::string_view text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole && number >= 0 && number < kMostGpus ? std::optional(number) : std::nullopt;
}

// The numbers of the GPUs that our processes see, in CUDA's order. CUDA ignores the first entry of
// the variable that names no GPU and all entries after it.
std::vector<int> visible_numbers(const std::vector<GpuInfo>& present,
                                 const std::optional<std::string>& visible) {
  std::vector<int> numbers;
  if (!visible) {
    for (const GpuInfo& gpu : present) numbers.push_back(gpu.number);
    return numbers;
  }
  for (const std::string& entry : split_at(*visible, ',')) {
    const std::string_view part = trimmed(entry);
    const auto named = std::find_if(present.begin(), present.end(), [&](const GpuInfo& gpu) {
      return number_of(part) == gpu.number ||
             (part.starts_with("GPU-") && gpu.uuid.starts_with(part));
    });
    if (named == present.end()) break;
    numbers.push_back(named->number);
  }
  return numbers;
}

// The error for a requested GPU that is not available.
tl::unexpected<Error> missing(int number, const std::vector<GpuInfo>& present,
                              const std::optional<std::string>& visible) {
  const bool there = std::any_of(present.begin(), present.end(),
                                 [&](const GpuInfo& gpu) { return gpu.number == number; });
  if (there) {
    return usage_error(
        fmt::format("--gpu_ids names GPU {}, which CUDA_VISIBLE_DEVICES={} hides; unset it or "
                    "change one of them",
                    number, visible.value_or("")));
  }
  return usage_error(
      fmt::format("--gpu_ids names GPU {}; this machine has {} ({} to {})", number,
                  present.size() == 1 ? "one GPU" : fmt::format("{} GPUs", present.size()),
                  present.front().number, present.back().number));
}

}  // namespace

Result<std::vector<int>> parse_gpu_ids(std::string_view text) {
  std::vector<int> numbers;
  const auto bad = [&] {
    return usage_error(fmt::format(
        "--gpu_ids={}: takes numbers and ranges, such as 0,2,4-7, or -1 for all", text));
  };
  if (trimmed(text).empty() || trimmed(text) == "-1") return numbers;
  for (const std::string& entry : split_at(text, ',')) {
    const std::string_view part = trimmed(entry);
    const std::size_t dash = part.find('-');
    const auto first = number_of(trimmed(part.substr(0, dash)));
    const auto last =
        dash == std::string_view::npos ? first : number_of(trimmed(part.substr(dash + 1)));
    if (!first || !last || *first > *last) return bad();
    for (int number = *first; number <= *last; ++number) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

Result<std::vector<ChosenGpu>> choose_gpus(const std::vector<GpuInfo>& present, const GpuWish& wish,
                                           const std::optional<std::string>& visible) {
  ASSAY_TRY(const std::vector<int> wanted, parse_gpu_ids(wish.ids));
  if (present.empty()) return usage_error("there is no GPU here; --num_gpus=0 runs on the CPU");
  const std::vector<int> seen = visible_numbers(present, visible);
  std::vector<ChosenGpu> chosen;
  const auto take = [&](int number) {
    const auto place = std::find(seen.begin(), seen.end(), number);
    if (place == seen.end()) return false;
    const auto info = std::find_if(present.begin(), present.end(),
                                   [&](const GpuInfo& gpu) { return gpu.number == number; });
    chosen.push_back({*info, static_cast<int>(place - seen.begin())});
    return true;
  };
  for (const int number : wanted.empty() ? seen : wanted) {
    if (!take(number)) return missing(number, present, visible);
  }
  if (chosen.empty()) {
    return usage_error(fmt::format(
        "CUDA_VISIBLE_DEVICES={} hides every GPU; unset it, or --num_gpus=0 runs on the CPU",
        visible.value_or("")));
  }
  if (wish.count > static_cast<int>(chosen.size())) {
    return usage_error(fmt::format("--num_gpus={}: there are {} to choose from{}{}", wish.count,
                                   chosen.size(), wanted.empty() ? "" : " in --gpu_ids",
                                   visible ? " (CUDA_VISIBLE_DEVICES=" + *visible + ")" : ""));
  }
  if (wish.count > 0) chosen.resize(static_cast<std::size_t>(wish.count));
  return chosen;
}

Status check_driver(const GpuDriver& driver, std::uint32_t cuda, std::string_view plugin) {
  if (!driver.present) {
    return usage_error(
        "no NVIDIA driver answers here (libnvidia-ml.so.1); --num_gpus=0 runs on the CPU");
  }
  if (driver.cuda != 0 && driver.cuda < cuda) {
    return usage_error(
        fmt::format("the NVIDIA driver {} runs CUDA {}.{} at most, and assay's plug-in for GPUs "
                    "was built with {}: "
                    "update the driver or build assay with an older toolkit",
                    driver.version, driver.cuda / 1000, driver.cuda % 1000 / 10, plugin));
  }
  return {};
}

}  // namespace assay
