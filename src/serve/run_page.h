#pragma once

// The page of `assay serve`: its files, and the data of a run that may still be running.

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "serve/case_list.h"
#include "serve/source.h"

namespace assay {

struct PageReply {
  std::string type;  // a media type
  std::string body;
};

// Reads a run in a thread of its own, from construction to destruction.
class RunPage {
 public:
  // `where`: the run's folder or address; empty: the page cannot ask for scripts and logs.
  explicit RunPage(std::unique_ptr<RunSource> source, std::string where = {});
  RunPage(const RunPage&) = delete;
  RunPage& operator=(const RunPage&) = delete;
  ~RunPage() = default;

  // The content of a path: "/", "/page.js", "/data.json", "/cases/12", "/finding/DIGEST",
  // "/log/slot0.log". Nullopt for an unknown path. Thread-safe.
  std::optional<PageReply> reply(std::string_view path) const;

  // The paths whose content does not depend on the run, and this content.
  static std::vector<std::string> file_paths();
  static std::optional<PageReply> file(std::string_view path);

 private:
  struct Shown {
    std::string data = "{}";            // JSON
    std::vector<CaseList::Part> parts;  // of the list of cases
  };
  void watch(const std::stop_token& stop);
  void put(Shown shown);
  std::shared_ptr<const Shown> shown() const;

  std::string where_;
  std::unique_ptr<RunSource> source_;  // only reader_ uses it
  mutable std::mutex mutex_;
  std::shared_ptr<const Shown> shown_ = std::make_shared<const Shown>();
  std::jthread reader_;  // last: it stops before the other members are destroyed
};

}  // namespace assay
