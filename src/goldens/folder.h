#pragma once

// A folder of goldens: results that a lane gave, recorded for runs on other machines.
//
//   goldens.json                 the header: versions, settings, shards; written last
//   goldens.index                where each case lies, sorted by case id
//   goldens-SEQUENCE-PID.shard   the results (goldens/shard.h)
//
// The folder can be served by any static HTTP server. Its header names no file that is not whole.

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "goldens/shard.h"

namespace assay {

struct SealedGoldens {
  std::uint64_t cases = 0;
  std::uint64_t bytes = 0;           // of all shards
  std::vector<std::string> damaged;  // shards that are damaged; what follows the damage is left out
};

// Indexes all shards of the folder and writes the header with `facts`. No writer may be at work.
// The torn end that a killed writer left is cut off; what follows damage is left out.
Result<SealedGoldens> seal_goldens(const std::filesystem::path& folder,
                                   const nlohmann::json& facts);

// Reads a folder of goldens, or the local copy of one that is served by HTTP. The copy gets missing
// files as they are needed; several processes may share it.
class GoldenFolder {
 public:
  // Fetches the header and the index of `url` to `folder`, in place of earlier ones.
  static Status fetch(const std::string& url, const std::filesystem::path& folder);
  // `url` is empty for a folder that needs no fetching.
  static Result<GoldenFolder> open(std::filesystem::path folder, std::string url);

  // What the recording run wrote with seal_goldens().
  const nlohmann::json& facts() const { return facts_; }
  // The recordings of this case, the newest first; empty: there is none. An error if its shard is
  // damaged or cannot be fetched.
  Result<std::vector<GoldenBytes>> find(CaseId id);

 private:
  struct Entry {
    CaseId id = 0;
    std::uint64_t sequence = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t shard = 0;  // in the header's list
  };
  friend Result<SealedGoldens> seal_goldens(const std::filesystem::path&, const nlohmann::json&);
  Result<const std::vector<GoldenCase>*> frame_of(const Entry& entry);

  std::filesystem::path folder_;
  std::string url_;
  nlohmann::json facts_;
  std::vector<std::string> shards_;
  std::vector<Entry> index_;
  // The frames that were read last: neighbours of a case were recorded with it.
  struct Kept {
    std::uint64_t shard = 0;
    std::uint64_t offset = 0;
    std::vector<GoldenCase> cases;
  };
  std::vector<Kept> kept_;
  std::size_t next_kept_ = 0;
};

}  // namespace assay
