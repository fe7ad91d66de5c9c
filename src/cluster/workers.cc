#include "cluster/workers.h"

#include <fmt/format.h>

namespace assay {

std::vector<std::string> words_of(const Workers& workers, const std::string& number) {
  std::vector<std::string> words{workers.program};
  if (workers.store.empty()) {
    words.insert(words.end(), {"api", fmt::format("--shard={}/{}", number, workers.count)});
  } else {
    words.insert(words.end(), {"work", "--store=" + workers.store});
  }
  words.push_back(fmt::format("--log_dir={}/worker-{}", workers.log_dir, number));
  words.insert(words.end(), workers.arguments.begin(), workers.arguments.end());
  return words;
}

}  // namespace assay
