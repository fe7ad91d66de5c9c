#include "store/merge.h"

#include <fmt/format.h>

#include <set>
#include <unordered_map>
#include <utility>

#include "base/atomic_file.h"
#include "schedule/shards.h"
#include "store/open_store.h"
#include "store/sqlite_store.h"
#include "verdict/outcome.h"

namespace assay {
namespace {

// Shortens a value, so that a message fits a line: some properties are long lists.
std::string beginning(const std::string& value) {
  constexpr std::size_t kShown = 60;
  return value.size() <= kShown ? value : value.substr(0, kShown) + "…";
}

using Properties = std::map<std::string, std::string>;

// The merged run is written here and moved when it is complete.
std::filesystem::path part_of(const std::filesystem::path& out) { return out / "merge.part"; }

class Merger {
 public:
  Merger(const std::filesystem::path& out, std::span<const std::filesystem::path> runs)
      : out_(out), runs_(runs) {}

  Result<MergeSummary> run() {
    for (std::size_t run = 0; run < runs_.size(); ++run) ASSAY_CHECK(choose_from(run));
    ASSAY_CHECK(note_missing_shards());
    ASSAY_TRY(const std::unique_ptr<Store> merged, open_store(out_, StoreMode::create));
    for (const auto& [key, value] : properties_) ASSAY_CHECK(merged->set_property(key, value));
    for (std::size_t run = 0; run < runs_.size(); ++run) ASSAY_CHECK(write_from(run, *merged));
    summary_.cases = chosen_.size();
    ASSAY_TRY(const StoreCounts counts, merged->counts());
    summary_.unfinished = counts.planned - counts.finished;
    ASSAY_CHECK(merged->commit());
    return std::move(summary_);
  }

 private:
  struct Choice {
    std::size_t run = 0;
    Outcome outcome = Outcome::pass;
  };

  Status choose_from(std::size_t run) {
    ASSAY_TRY(const std::unique_ptr<Store> store, open_store(runs_[run], StoreMode::read));
    ASSAY_CHECK(check_properties(run, *store));
    return store->each_finished([&](const FinishedCase& finished) -> Status {
      choose(run, finished);
      return {};
    });
  }

  void choose(std::size_t run, const FinishedCase& finished) {
    const Outcome outcome = finished.verdict.outcome;
    const auto [found, is_new] = chosen_.try_emplace(finished.id, Choice{run, outcome});
    if (is_new) return;
    ++summary_.repeated;
    Choice other{run, outcome};
    if (found->second.outcome == outcome) return;
    if (info(outcome).failed && !info(found->second.outcome).failed)
      std::swap(found->second, other);
    summary_.conflicts.push_back({std::string(finished.text), found->second.outcome,
                                  runs_[found->second.run].string(), other.outcome,
                                  runs_[other.run].string()});
  }

  // Checks that all runs have the same properties, except the shard and the flags for reruns.
  Status check_properties(std::size_t run, Store& store) {
    ASSAY_TRY(Properties found, store.properties());
    if (const auto shard = found.extract(std::string(kShardProperty))) {
      shards_.insert(shard.mapped());
    }
    std::erase_if(found, [](const auto& each) { return each.first.starts_with(kRerunFlag); });
    if (run == 0) properties_ = found;
    const auto differing = [&](const Properties& of, const Properties& than) -> Status {
      for (const auto& [key, value] : of) {
        const auto other = than.find(key);
        if (other != than.end() && other->second == value) continue;
        return usage_error(fmt::format(
            "{} and {} differ in `{}`: {} and {}; merge only runs with the same settings and "
            "versions",
            runs_[0].string(), runs_[run].string(), key, beginning(value),
            other == than.end() ? "not set" : beginning(other->second)));
      }
      return {};
    };
    ASSAY_CHECK(differing(properties_, found));
    return differing(found, properties_);
  }

  Status note_missing_shards() {
    if (shards_.empty()) return {};
    ASSAY_TRY(const Shard any, parse_shard(*shards_.begin()));
    for (const std::string& text : shards_) {
      ASSAY_TRY(const Shard shard, parse_shard(text));
      if (shard.of == any.of) continue;
      return usage_error(
          fmt::format("shards {} and {} divide the corpus into different numbers of parts; merge "
                      "only shards of one division",
                      text_of(any), text));
    }
    for (std::size_t number = 1; number <= any.of; ++number) {
      const std::string shard = text_of({number, any.of});
      if (!shards_.contains(shard)) summary_.missing_shards.push_back(shard);
    }
    return {};
  }

  Status write_from(std::size_t run, Store& merged) {
    ASSAY_TRY(const std::unique_ptr<Store> store, open_store(runs_[run], StoreMode::read));
    ASSAY_CHECK(store->each_finished([&](const FinishedCase& finished) {
      return chosen_.at(finished.id).run == run ? write(finished, merged) : Status();
    }));
    ASSAY_CHECK(store->each_unfinished([&](const wire::CaseT& left) -> Status {
      return chosen_.contains(left.id) ? Status() : merged.add_case(left);
    }));
    return store->each_invalid([&](const InvalidLine& line) -> Status {
      return invalid_.insert(line.where).second ? merged.add_invalid(line) : Status();
    });
  }

  static Status write(const FinishedCase& finished, Store& merged) {
    ASSAY_CHECK(merged.add_case(wire::planned_case(finished.id, finished.text)));
    ASSAY_TRY([[maybe_unused]] const bool is_new, merged.finish(finished));
    return {};
  }

  const std::filesystem::path& out_;
  std::span<const std::filesystem::path> runs_;
  Properties properties_;
  std::set<std::string> shards_;
  std::set<std::string> invalid_;  // InvalidLine::where
  std::unordered_map<std::uint64_t, Choice> chosen_;
  MergeSummary summary_;
};

}  // namespace

Result<MergeSummary> merge_runs(const std::filesystem::path& out,
                                std::span<const std::filesystem::path> runs) {
  if (has_store(out)) {
    return usage_error(
        fmt::format("{} already holds a run; merge into a new folder", out.string()));
  }
  std::error_code error;
  const std::filesystem::path part = part_of(out);
  std::filesystem::remove_all(part, error);
  ASSAY_CHECK(make_folder(part));
  ASSAY_TRY(MergeSummary summary, Merger(part, runs).run());
  std::filesystem::rename(part / SqliteStore::kFileName, out / SqliteStore::kFileName, error);
  if (error) return fail(fmt::format("cannot write {}: {}", out.string(), error.message()));
  std::filesystem::remove_all(part, error);
  return summary;
}

}  // namespace assay
