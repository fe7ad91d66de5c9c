#pragma once

// The pages of the runs in the folders of one folder: "/" lists them, and "/run/NAME/…" is the page
// of one.

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "serve/run_page.h"

namespace assay {

// Used by one thread.
class Nights {
 public:
  explicit Nights(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The content of a path. Nullopt for an unknown one.
  std::optional<PageReply> reply(std::string_view path);

 private:
  std::string list();
  const RunPage* page_of(const std::string& name);

  std::filesystem::path folder_;
  // Rows by the name of the run's folder, and when it had been written.
  std::map<std::string, std::pair<std::filesystem::file_time_type, nlohmann::json>> rows_;
  std::map<std::string, std::unique_ptr<RunPage>> pages_;  // of the runs that somebody looks at
};

}  // namespace assay
