#include "report/relations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/table.h"
#include "base/values.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRelationsVersion = 1;
constexpr std::array<std::string_view, 4> kNames{"nothing", "no", "rounding", "bits"};
constexpr std::array<std::string_view, 4> kSigns{"·", "≠", "≈", "="};

Held worse(Held one, Held other) {
  if (one == Held::nothing) return other;
  return other == Held::nothing ? one : std::min(one, other);
}

Result<Held> held_of(const nlohmann::json& value) {
  const auto found = std::ranges::find(kNames, value.get<std::string>());
  if (found == kNames.end()) return fail("unknown word " + value.get<std::string>());
  return static_cast<Held>(found - kNames.begin());
}

std::string sign_of(const RelationCell& cell) {
  const auto sign = [](Held held) { return kSigns.at(static_cast<std::size_t>(held)); };
  if (cell.gradient == Held::nothing || cell.gradient == cell.result) {
    return std::string(sign(cell.result));
  }
  return fmt::format("{} {}", sign(cell.result), sign(cell.gradient));
}

Json json_of(const RelationCell& cell) {
  Json made{{"result", name_of(cell.result)},
            {"gradient", name_of(cell.gradient)},
            {"cases", cell.cases},
            {"skipped", cell.skipped}};
  if (!cell.example.empty()) made["example"] = cell.example;
  return made;
}

Result<RelationTable> table_of(const nlohmann::json& file) {
  RelationTable table;
  table.relations = file.at("relations").get<std::vector<std::string>>();
  table.build = file.at("build").get<std::map<std::string, std::string>>();
  for (const auto& [api, cells] : file.at("apis").items()) {
    for (const auto& [relation, cell] : cells.items()) {
      RelationCell& made = table.apis[api][relation];
      ASSAY_TRY(made.result, held_of(cell.at("result")));
      ASSAY_TRY(made.gradient, held_of(cell.at("gradient")));
      made.cases = cell.at("cases");
      made.skipped = cell.at("skipped");
    }
  }
  return table;
}

}  // namespace

std::string_view name_of(Held held) { return kNames.at(static_cast<std::size_t>(held)); }

void RelationCell::add(Held of_result, Held of_gradient, std::string_view text) {
  ++cases;
  result = worse(result, of_result);
  gradient = worse(gradient, of_gradient);
  if (example.empty() && std::min(of_result, of_gradient) == Held::no) example = text;
}

std::string RelationTable::markdown() const {
  std::vector<std::string> heads{"API"};
  heads.insert(heads.end(), relations.begin(), relations.end());
  Table table(heads);
  for (const auto& [api, cells] : apis) {
    std::vector<std::string> row{api};
    for (const std::string& relation : relations) {
      row.push_back(sign_of(value_at(cells, relation)));
    }
    table.add(std::move(row));
  }
  return table.markdown() +
         "\n`=` bit for bit, `≈` within rounding, `≠` not, `·` nothing to compare; "
         "a second sign is that of the gradient.\n";
}

Status RelationTable::write(const std::filesystem::path& file) const {
  Json made{{"version", kRelationsVersion}, {"build", build}, {"relations", relations}};
  for (const auto& [api, cells] : apis) {
    for (const auto& [relation, cell] : cells) made["apis"][api][relation] = json_of(cell);
  }
  return write_file(file, dumped(made, 1) + "\n");
}

Result<RelationTable> RelationTable::read(const std::filesystem::path& file) {
  const auto wrong = [&file](std::string_view why) {
    return fail(fmt::format("{}: no table of relations ({}); `assay relations` writes it",
                            file.string(), why));
  };
  ASSAY_TRY(const std::string text, read_file(file));
  const nlohmann::json found = parse_json(text);
  if (!found.is_object() || !found.contains("version")) return wrong("it is no JSON of this kind");
  if (found["version"] != kRelationsVersion) return wrong("it has another version");
  try {
    auto table = table_of(found);
    return table ? std::move(table) : wrong(table.error().message);
  } catch (const nlohmann::json::exception& error) {
    return wrong(error.what());
  }
}

std::vector<std::string> lost_relations(const RelationTable& before, const RelationTable& now) {
  std::vector<std::string> lost;
  const auto compare = [&](const std::string& api, const std::string& relation,
                           std::string_view what, Held was, Held is) {
    if (was <= Held::no || is >= was) return;
    lost.push_back(
        fmt::format("{} {}, {}: was {}, is {}", api, relation, what, name_of(was), name_of(is)));
  };
  for (const auto& [api, cells] : before.apis) {
    const auto found = now.apis.find(api);
    if (found == now.apis.end()) continue;
    for (const auto& [relation, was] : cells) {
      if (std::ranges::find(now.relations, relation) == now.relations.end()) continue;
      const RelationCell is = value_at(found->second, relation);
      compare(api, relation, "result", was.result, is.result);
      compare(api, relation, "gradient", was.gradient, is.gradient);
    }
  }
  return lost;
}

}  // namespace assay
