#include "cli/fresh_folder.h"

#include <utility>

namespace assay {

FreshFolder::FreshFolder(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::error_code error;
  std::filesystem::path each = std::filesystem::absolute(folder_, error).lexically_normal();
  if (!each.has_filename()) each = each.parent_path();  // "out/"
  // A link that leads nowhere is there, too.
  std::error_code ignored;
  const auto is_there = [&](const std::filesystem::path& path) {
    return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
  };
  for (; !error && !is_there(each); each = each.parent_path()) missing_.push_back(each);
  for (const char* name : {"lanes", "run.db", "run.db-wal"}) {
    if (missing_.empty() && !is_there(folder_ / name)) {
      inside_.push_back(folder_ / name);
    }
  }
}

void FreshFolder::discard(const Error& error) const {
  std::error_code ignored;
  for (const auto& made : inside_) {
    if (error.message.find(made.string() + "/") != std::string::npos) continue;
    std::filesystem::remove_all(made, ignored);
  }
  if (missing_.empty() || error.message.find(folder_.string() + "/") != std::string::npos) {
    return;
  }
  std::filesystem::remove_all(missing_.front(), ignored);
  for (const auto& folder : missing_) std::filesystem::remove(folder, ignored);  // only if empty
}

Result<RunSummary> run_in(const FreshFolder& folder, const RunConfig& config,
                          RunObserver observer) {
  bool has_plan = false;
  observer.planned = [&has_plan, planned = std::move(observer.planned)](const Totals& totals) {
    has_plan = true;
    if (planned) planned(totals);
  };
  auto summary = run_engine(config, observer);
  if (!summary && !has_plan) folder.discard(summary.error());
  return summary;
}

}  // namespace assay
