#include "goldens/folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>
#include <tuple>

#include "base/atomic_file.h"
#include "base/json.h"
#include "base/process.h"
#include "fill/fill.h"

namespace assay {
namespace {

constexpr const char* kHeader = "goldens.json";
constexpr const char* kIndex = "goldens.index";
constexpr std::string_view kShardEnd = ".shard";
constexpr std::size_t kKeptFrames = 8;
constexpr std::chrono::minutes kFetchLimit{10};

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

// A name in a header may come from elsewhere: it must not lead out of the folder.
bool is_shard_name(const std::string& name) {
  return name.starts_with("goldens-") && name.ends_with(kShardEnd) &&
         name.find('/') == std::string::npos;
}

std::vector<std::string> shards_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
    if (is_shard_name(file.path().filename().string())) names.push_back(file.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Fetches a file with the program curl, which knows proxies, certificates and retries.
Status fetch_file(const std::string& url, const std::string& name,
                  const std::filesystem::path& folder) {
  const std::filesystem::path part = folder / fmt::format("{}.{}.part", name, ::getpid());
  SpawnOptions options;
  options.argv = {"curl",
                  "--fail",
                  "--silent",
                  "--show-error",
                  "--location",
                  "--proto",
                  "=http,https",
                  "--retry",
                  "3",
                  "--output",
                  part.string(),
                  "--",
                  fmt::format("{}/{}", url, name)};
  auto curl = Process::spawn(options);
  if (!curl)
    return fail(fmt::format("{}; goldens over HTTP need the program curl", curl.error().message));
  ASSAY_TRY(const ExitStatus status, curl->wait_at_most(kFetchLimit));
  std::error_code error;
  if (status.ok()) std::filesystem::rename(part, folder / name, error);
  if (status.ok() && !error) return {};
  std::filesystem::remove(part, error);
  return fail(fmt::format("cannot fetch {}/{}: curl ended with {}", url, name, status.describe()));
}

}  // namespace

Result<SealedGoldens> seal_goldens(const std::filesystem::path& folder,
                                   const nlohmann::json& facts) {
  SealedGoldens sealed;
  std::vector<GoldenFolder::Entry> index;
  nlohmann::json shards = nlohmann::json::array();
  for (const std::string& name : shards_in(folder)) {
    std::uint64_t sound = 0;
    ASSAY_TRY(const std::vector<FramePlace> places, read_places(folder / name, sound));
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(folder / name, error);
    if (sound < size) sealed.damaged.push_back(name);
    if (places.empty()) continue;
    for (const FramePlace& place : places) {
      for (const CaseId id : place.cases) {
        index.push_back({id, place.sequence, place.offset, place.bytes, shards.size()});
      }
    }
    shards.push_back({{"name", name}, {"bytes", size}});
    sealed.bytes += sound;
  }
  std::sort(index.begin(), index.end(), [](const auto& a, const auto& b) {
    return std::tie(a.id, b.sequence) < std::tie(b.id, a.sequence);
  });
  for (std::size_t i = 0; i < index.size(); ++i) {
    sealed.cases += i == 0 || index[i - 1].id != index[i].id ? 1 : 0;
  }
  const auto bytes = std::as_bytes(std::span(index));
  ASSAY_CHECK(
      write_file(folder / kIndex, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  const nlohmann::json header{{"format", "assay goldens"},     {"version", kGoldensVersion},
                              {"index", hex(checksum(bytes))}, {"cases", sealed.cases},
                              {"shards", std::move(shards)},   {"facts", facts}};
  ASSAY_CHECK(write_file(folder / kHeader, header.dump(1) + "\n"));
  return sealed;
}

Status GoldenFolder::fetch(const std::string& url, const std::filesystem::path& folder) {
  ASSAY_CHECK(make_folder(folder));
  ASSAY_CHECK(fetch_file(url, kIndex, folder));
  return fetch_file(url, kHeader, folder);
}

Result<GoldenFolder> GoldenFolder::open(std::filesystem::path folder, std::string url) {
  const auto text = read_file(folder / kHeader);
  if (!text) {
    return usage_error(fmt::format(
        "{} holds no goldens that are whole: it has no {}. Make them with `assay record "
        "--log_dir={}`; after an interruption, the same command again completes them",
        folder.string(), kHeader, folder.string()));
  }
  const nlohmann::json header = parse_json(*text);
  const auto damaged = [&](std::string_view what) {
    return usage_error(fmt::format("{}: {} is damaged; copy it again, or record again",
                                   (folder / what).string(), what));
  };
  if (!header.is_object() || header.value("format", "") != "assay goldens" ||
      !header.contains("facts") || !header["facts"].is_object()) {
    return damaged(kHeader);
  }
  if (header.value("version", 0U) != kGoldensVersion) {
    return usage_error(
        fmt::format("{} has format {}, and this assay reads format {}: use the "
                    "assay that recorded them, or record again",
                    folder.string(), header.value("version", 0U), kGoldensVersion));
  }
  GoldenFolder found;
  for (const nlohmann::json& shard : header.value("shards", nlohmann::json::array())) {
    found.shards_.push_back(shard.is_object() ? shard.value("name", "") : "");
    if (!is_shard_name(found.shards_.back())) return damaged(kHeader);
  }
  ASSAY_TRY(const std::string index, read_file(folder / kIndex));
  if (hex(checksum(std::as_bytes(std::span(index)))) != header.value("index", "") ||
      index.size() % sizeof(Entry) != 0) {
    return damaged(kIndex);
  }
  found.index_.resize(index.size() / sizeof(Entry));
  std::memcpy(found.index_.data(), index.data(), index.size());
  found.facts_ = header["facts"];
  found.folder_ = std::move(folder);
  found.url_ = std::move(url);
  return found;
}

Result<std::vector<GoldenBytes>> GoldenFolder::find(CaseId id) {
  std::vector<GoldenBytes> found;
  auto entry = std::lower_bound(index_.begin(), index_.end(), id,
                                [](const Entry& one, CaseId wanted) { return one.id < wanted; });
  for (; entry != index_.end() && entry->id == id; ++entry) {
    ASSAY_TRY(const std::vector<GoldenCase>* const cases, frame_of(*entry));
    for (const GoldenCase& one : *cases) {
      if (one.id == id) found.push_back(one.bytes);
    }
  }
  return found;
}

Result<const std::vector<GoldenCase>*> GoldenFolder::frame_of(const Entry& entry) {
  for (const Kept& kept : kept_) {
    if (kept.shard == entry.shard && kept.offset == entry.offset) return &kept.cases;
  }
  if (entry.shard >= shards_.size()) return fail("the index of the goldens names no shard");
  const std::string& name = shards_[entry.shard];
  std::error_code error;
  if (!url_.empty() && !std::filesystem::exists(folder_ / name, error)) {
    ASSAY_CHECK(fetch_file(url_, name, folder_));
  }
  ASSAY_TRY(std::vector<GoldenCase> cases, read_frame(folder_ / name, entry.offset, entry.bytes));
  if (kept_.size() < kKeptFrames) kept_.emplace_back();
  Kept& kept = kept_[next_kept_++ % kKeptFrames];
  kept = {entry.shard, entry.offset, std::move(cases)};
  return &kept.cases;
}

}  // namespace assay
