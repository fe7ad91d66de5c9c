#include "engine/earlier_costs.h"

#include <fmt/format.h>

#include <memory>

#include "case/case_traits.h"
#include "case/parser.h"
#include "schedule/cost.h"
#include "store/open_store.h"
#include "wire/frame.h"
#include "wire/messages_generated.h"

namespace assay {
namespace {

// 0: unknown, for a case that never ran or whose record is damaged.
std::uint64_t took_us(const FinishedCase& finished) {
  if (finished.took_us > 0) return finished.took_us;
  if (finished.record.empty()) return 0;
  const auto record = wire::open<wire::Record>(finished.record);
  return record ? measured_work_us(**record) : 0;
}

}  // namespace

Result<EarlierCosts> EarlierCosts::read(const std::filesystem::path& where) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(where, StoreMode::read));
  EarlierCosts costs;
  Case parsed;
  ASSAY_CHECK(store->each_finished([&](const FinishedCase& finished) -> Status {
    const std::uint64_t took = took_us(finished);
    if (took > 0 && parse_case(finished.text, parsed)) {
      costs.add(finished.id, finished.text, estimate_cost(parsed).elements, took);
    }
    return {};
  }));
  if (costs.expensive_.empty() && costs.kinds_.empty()) {
    return usage_error(fmt::format("the run in {} has no case timings", where.string()));
  }
  return costs;
}

void EarlierCosts::add(std::uint64_t id, std::string_view case_text, std::uint64_t elements,
                       std::uint64_t took_us) {
  if (took_us >= static_cast<std::uint64_t>(kExpensiveUs)) {
    expensive_.insert_or_assign(id, took_us);
  } else {
    kinds_.add(api_of(case_text), first_dtype(case_text), elements, took_us);
  }
  digest_ += id * (took_us | 1U);  // independent of the order
}

std::optional<std::uint64_t> EarlierCosts::expected_us(std::uint64_t id, std::string_view case_text,
                                                       std::uint64_t elements) const {
  const auto known = expensive_.find(id);
  if (known != expensive_.end()) return known->second;
  const auto of_kind = kinds_.expected_us(case_text, elements);
  if (!of_kind) return std::nullopt;
  return static_cast<std::uint64_t>(*of_kind);
}

}  // namespace assay
