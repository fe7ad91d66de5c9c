#include "store/postgres_errors.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <array>
#include <memory>
#include <pqxx/except>
#include <utility>

namespace assay::postgres {
namespace {

using Hint = std::pair<std::string_view, std::string_view>;
constexpr std::array<Hint, 6> kHints{{
    {"no password supplied",
     "write a line HOST:PORT:DATABASE:USER:PASSWORD into ~/.pgpass or the file that PGPASSFILE "
     "names, mode 600"},
    {"password authentication failed", "check ~/.pgpass or the file that PGPASSFILE names"},
    {"no schema has been selected to create in",
     "the schema in the address does not exist; create it with CREATE SCHEMA"},
    {"permission denied for schema",
     "allow the user to create tables there (GRANT CREATE ON SCHEMA), or use another schema"},
    {"does not exist", "create it with createdb, or use another database"},
    {"Connection refused", "no PostgreSQL server answers there; check the host and the port"},
}};

// Advice for SQL errors. The statements fit the tables that were there when the store was opened.
constexpr std::string_view kOtherTables =
    "the tables have changed since this assay opened them; if another version of assay has "
    "upgraded "
    "them, continue with that version (no recorded result is lost)";

// The part "user:password" of an address.
std::string_view user_part(std::string_view address) {
  const std::size_t begin = address.find("://");
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = address.substr(begin + 3);
  const std::size_t end = rest.rfind('@');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

bool may_have_password(std::string_view address) {
  return user_part(address).find(':') != std::string_view::npos ||
         address.find("password") != std::string_view::npos;
}

}  // namespace

Error database_error(const std::exception& error) {
  if (dynamic_cast<const pqxx::disk_full*>(&error) != nullptr) return {std::string(kDiskIsFull)};
  if (dynamic_cast<const pqxx::unexpected_rows*>(&error) != nullptr) {
    return {
        "the database: assay's tables are there and lack a row; drop the schema, or name another "
        "(options=-csearch_path%3DNAME)"};
  }
  const std::string_view all = error.what();
  const std::string_view line = all.substr(0, all.find('\n'));
  if (dynamic_cast<const pqxx::syntax_error*>(&error) != nullptr) {
    return {fmt::format("the database: {} ({})", line, kOtherTables)};
  }
  for (const auto& [sign, hint] : kHints) {
    if (line.find(sign) == std::string_view::npos) continue;
    if (sign == "does not exist" && line.find("database \"") == std::string_view::npos) continue;
    return {fmt::format("the database: {} ({})", line, hint)};
  }
  return {fmt::format("the database: {}", line)};
}

Status check_address(const std::string& address) {
  char* said = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(address.c_str(), &said), &PQconninfoFree);
  const std::unique_ptr<char, decltype(&PQfreemem)> owned(said, &PQfreemem);
  if (options) return {};
  std::string_view why = said == nullptr ? std::string_view() : said;
  why = why.substr(0, why.find('\n'));
  return usage_error(fmt::format(
      "the database's address cannot be parsed{}{}; write postgresql://USER@HOST:PORT/DATABASE, "
      "with %40 for @, %3A for :, %2F for / and %25 for % inside a name",
      why.empty() || may_have_password(address) ? "" : ": ",
      may_have_password(address) ? "" : why));
}

bool has_password(const std::string& address) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(address.c_str(), nullptr), &PQconninfoFree);
  for (const PQconninfoOption* option = options.get(); option != nullptr && option->keyword;
       ++option) {
    if (option->val != nullptr && std::string_view(option->keyword) == "password") return true;
  }
  return false;
}

std::string without_password(std::string_view address) {
  std::string shown(address);
  const std::string_view user = user_part(address);
  const std::size_t colon = user.find(':');
  if (colon != std::string_view::npos) {
    const auto at = static_cast<std::size_t>(user.data() - address.data());
    shown.erase(at + colon, user.size() - colon);
  }
  constexpr std::string_view kKey = "password=";
  for (std::size_t at = shown.find(kKey); at != std::string::npos;
       at = shown.find(kKey, at + kKey.size())) {
    const std::size_t begin = at + kKey.size();
    shown.erase(begin, std::min(shown.find('&', begin), shown.size()) - begin);
  }
  return shown;
}

}  // namespace assay::postgres
