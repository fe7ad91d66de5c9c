// `assay corpus slim`.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <queue>
#include <utility>

#include "case/corpus_tools.h"

namespace assay {
namespace {

struct Candidate {
  std::string text;
  std::string note;
  std::string api;
  std::uint64_t elements = 0;
  std::vector<std::uint32_t> kills;
  bool kept = false;
};

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

// The text with "N" for each number but 0 and 1: cases of one class differ in sizes only. Digits of
// names, such as float32, stay.
std::string class_of(std::string_view text) {
  std::string found;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end == at) {
      found += text[at++];
      continue;
    }
    const std::string_view word = text.substr(at, end - at);
    const bool number = std::isdigit(static_cast<unsigned char>(word[0])) != 0;
    found += number && word != "0" && word != "1" ? "N" : word;
    at = end;
  }
  return found;
}

// How far a size is from 1,000 elements, in powers of two: smaller tensors have no last row or
// block that goes wrong, larger ones take long.
double distance(const Candidate& one) {
  return std::abs(std::log2((static_cast<double>(one.elements) + 1) / 1000));
}

// The class of a case at each level, from coarse to fine: the API, the case without its sizes, and
// with the number of digits of its size.
std::string name_at(const Candidate& one, int level) {
  if (level == 0) return one.api;
  const std::string whole = class_of(one.text);
  return level == 1 ? whole : whole + std::to_string(std::to_string(one.elements).size());
}

class Slim {
 public:
  Slim(std::vector<Candidate>& all, std::size_t most) : all_(all), most_(most) {}

  // Greedy cover of the faults. A case's gain only falls, so a stale gain is an upper bound.
  void by_kills() {
    const auto fewer = [&](const auto& left, const auto& right) {
      if (left.first != right.first) return left.first < right.first;
      return all_[left.second].elements > all_[right.second].elements;
    };
    std::priority_queue<std::pair<std::size_t, std::size_t>,
                        std::vector<std::pair<std::size_t, std::size_t>>, decltype(fewer)>
        queue(fewer);
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (!all_[i].kills.empty()) queue.emplace(all_[i].kills.size(), i);
    }
    while (!queue.empty() && kept_ < most_) {
      const auto [gain, i] = queue.top();
      queue.pop();
      const std::size_t now = new_faults(all_[i]);
      if (now == 0) continue;
      if (now < gain) {
        queue.emplace(now, i);
      } else {
        keep(all_[i]);
      }
    }
  }

  // One case of each class without one, of medium size. APIs take turns, so that the end of the
  // share hits all alike.
  void by_class(int level) {
    std::map<std::string, std::map<std::string, Candidate*>> by_api;
    std::unordered_set<std::string> covered;
    for (const Candidate& one : all_) {
      if (one.kept) covered.insert(name_at(one, level));
    }
    for (Candidate& one : all_) {
      if (one.kept) continue;
      std::string name = name_at(one, level);
      if (covered.contains(name)) continue;
      Candidate*& medium = by_api[one.api][std::move(name)];
      if (medium == nullptr || distance(one) < distance(*medium)) medium = &one;
    }
    take_turns(by_api);
  }

  // Fills the share with the largest cases of each API.
  void by_size() {
    std::map<std::string, std::map<std::pair<std::uint64_t, std::size_t>, Candidate*>> by_api;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (!all_[i].kept) by_api[all_[i].api][{~all_[i].elements, i}] = &all_[i];
    }
    take_turns(by_api);
  }

  bool full() const { return kept_ >= most_; }
  std::size_t kept() const { return kept_; }
  std::size_t shown() const { return shown_.size(); }

 private:
  template <typename Turns>
  void take_turns(Turns& by_api) {
    while (!by_api.empty() && !full()) {
      for (auto of_api = by_api.begin(); of_api != by_api.end() && !full();) {
        auto& waiting = of_api->second;
        keep(*waiting.begin()->second);
        waiting.erase(waiting.begin());
        of_api = waiting.empty() ? by_api.erase(of_api) : std::next(of_api);
      }
    }
  }

  std::size_t new_faults(const Candidate& one) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        one.kills, [&](std::uint32_t fault) { return !shown_.contains(fault); }));
  }

  void keep(Candidate& one) {
    one.kept = true;
    ++kept_;
    shown_.insert(one.kills.begin(), one.kills.end());
  }

  std::vector<Candidate>& all_;
  std::size_t most_;
  std::size_t kept_ = 0;
  std::unordered_set<std::uint32_t> shown_;
};

}  // namespace

Result<SlimCorpus> slim_corpora(const std::vector<std::string>& patterns, double share,
                                const Kills& kills, const TextSink& out) {
  std::vector<Candidate> all;
  std::unordered_set<CaseId> seen;
  std::unordered_set<std::uint32_t> faults;
  SlimCorpus slim;
  ASSAY_TRY(slim.reading, each_case(patterns, [&](const CorpusCase& found) {
              if (!seen.insert(found.id).second) return;
              Candidate one;
              one.text = found.text;
              one.note = found.note;
              one.api = found.parsed.api();
              one.elements = found.parsed.total_elements();
              if (const auto known = kills.find(found.id); known != kills.end()) {
                one.kills = known->second;
                faults.insert(one.kills.begin(), one.kills.end());
              }
              all.push_back(std::move(one));
            }));
  slim.distinct = all.size();
  slim.faults = faults.size();
  Slim chosen(all, static_cast<std::size_t>(std::ceil(share * static_cast<double>(all.size()))));
  chosen.by_kills();
  for (int level = 0; level <= 2 && !chosen.full(); ++level) chosen.by_class(level);
  chosen.by_size();
  slim.kept = chosen.kept();
  slim.shown = chosen.shown();
  if (!slim.reading.head.empty()) ASSAY_CHECK(out(slim.reading.head + "\n"));
  for (const Candidate& one : all) {
    if (one.kept) ASSAY_CHECK(write_case(out, one.text, one.note));
  }
  return slim;
}

}  // namespace assay
