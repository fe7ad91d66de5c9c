#include "engine/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>

#include "base/atomic_file.h"
#include "base/text.h"
#include "engine/lane_plan.h"
#include "engine/lane_servers.h"
#include "engine/plan.h"
#include "engine/recorder.h"
#include "engine/run_properties.h"
#include "engine/session.h"
#include "slot/timing.h"
#include "store/known_deviations.h"
#include "store/open_store.h"
#include "verdict/mode.h"
#include "wire/shared.h"

namespace assay {
namespace {

// Settings that differ from the command line.
constexpr const char* kModeProperty = "mode";
constexpr const char* kValuesProperty = "values";
constexpr const char* kMachineProperty = "machine";

// Refuses a folder with logs of another program, such as engineV2, which assay's logs would
// replace.
Status refuse_foreign_logs(const std::filesystem::path& folder) {
  if (has_store(folder)) return {};
  std::vector<std::string_view> names{"checkpoint.txt", "log_inorder.log"};
  for (const OutcomeInfo& outcome : kOutcomes) names.push_back(outcome.log);
  std::error_code error;
  for (const std::string_view name : names) {
    if (std::filesystem::exists(folder / name, error)) {
      return usage_error(fmt::format(
          "{} holds a file of another tool ({}); choose another --log_dir", folder.string(), name));
    }
  }
  return {};
}

Status make_run_folder(const std::filesystem::path& folder) {
  ASSAY_CHECK(refuse_foreign_logs(folder));
  std::error_code error;
  if (std::filesystem::is_symlink(folder / "lanes", error)) {
    return usage_error((folder / "lanes").string() + " is a link; choose another --log_dir");
  }
  const Status made = make_folder(folder / "lanes");
  if (!made) return usage_error(made.error().message + "; choose another --log_dir");
  return {};
}

// Slots make their GPU contexts while the frameworks are imported: a context takes 0.1 to 0.4 s,
// during which no other lane on the GPU advances. No more slots than there is work for, because
// each takes most of a second from the others.
Result<std::vector<SpawnedSlot>> slots_ahead(const RunConfig& config, const Lanes& lanes,
                                             std::uint64_t cases) {
  constexpr std::uint64_t kCasesOfSlot = 500;
  const std::uint64_t wanted =
      std::min<std::uint64_t>(config.slots, (cases + kCasesOfSlot - 1) / kCasesOfSlot);
  std::vector<SpawnedSlot> ahead;
  if (is_timed(config.settings)) return ahead;  // nothing else may be on the device then
  for (std::uint32_t slot = 0; slot < wanted; ++slot) {
    const std::string device = compared_on(config, lanes.specs, slot);
    if (device.empty()) break;
    ASSAY_TRY(SpawnedSlot spawned, spawn_slot(slot, config.folder / "lanes", device));
    ahead.push_back(std::move(spawned));
  }
  return ahead;
}

using Properties = std::map<std::string, std::string>;

// A setting and its value, as on the command line.
std::string in_words(const std::string& key, const std::string& value) {
  if (key == kModeProperty && find_mode(value) != nullptr) return "--" + value;
  return fmt::format("{} = {}", key, key == kValuesProperty && value.empty() ? "all" : value);
}

// A run is resumed only with its first settings, because ids, inputs and verdicts of two settings
// do not mix. `stored` has the keys of `wanted`. The error names all differences.
Status check_same(const RunConfig& config, const Properties& wanted, const Properties& stored) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : wanted) {
    if (stored.at(key) != value) keys.push_back(key);
  }
  if (keys.empty()) return {};
  const auto list = [&](const auto& word) {
    std::vector<std::string> words;
    std::ranges::transform(keys, std::back_inserter(words), word);
    return fmt::format("{}", fmt::join(words, ", "));
  };
  const std::string run =
      config.store.empty() ? config.folder.string() : "the run in this database";
  if (std::ranges::all_of(keys, [](const auto& key) { return key.ends_with(kBuildSuffix); })) {
    return usage_error(fmt::format(
        "{} was begun with another build of {}. Then: {}. Now: {}. Choose another {}, or run all "
        "cases of a folder again with --rerun",
        run, list([](const auto& key) { return key.substr(0, key.size() - kBuildSuffix.size()); }),
        list([&](const auto& key) { return stored.at(key); }),
        list([&](const auto& key) { return wanted.at(key); }),
        config.store.empty() ? "--log_dir" : "schema of the database"));
  }
  const std::string then = list([&](const auto& key) { return in_words(key, stored.at(key)); });
  const std::string now = list([&](const auto& key) { return in_words(key, wanted.at(key)); });
  if (!config.store.empty()) {
    return usage_error(
        fmt::format("{} was begun with {}, here it is {}; use the same, or another schema of the "
                    "database (options=-csearch_path%3DNAME)",
                    run, then, now));
  }
  return usage_error(
      fmt::format("{} was begun with {}, this run has {}; resume it with the same, or choose "
                  "another --log_dir",
                  run, then, now));
}

// Only reads. Whoever plans a run for others knows less about it than the workers.
Status check_properties(const RunConfig& config, const Properties& wanted, RunReader& store) {
  ASSAY_TRY(const Properties found, store.properties());
  if (found.empty()) return {};  // a new run
  ASSAY_TRY(const StoreCounts counts, store.counts());
  const auto stored_of = [&](const Properties& some) {
    Properties stored = some;
    for (auto& [key, value] : stored) {
      if (const auto kept = found.find(key); kept != found.end()) {
        value = kept->second;
      } else if (config.store.empty() && counts.finished > 0) {
        value = "(an assay that did not keep it)";
      }
    }
    return stored;
  };
  // Other settings follow from the mode; the user has not named them.
  const Properties mode{{std::string(kModeProperty), config.settings.mode}};
  ASSAY_CHECK(check_same(config, mode, stored_of(mode)));
  return check_same(config, wanted, stored_of(wanted));
}

// What the run that recorded the goldens kept of its lane.
Status keep_facts_of(const GoldensConfig& goldens, const std::string& label, RunPlan& plan) {
  const auto keep = [&](const std::string& from, const std::string& to) -> Status {
    const auto fact = goldens.facts.find(from);
    return fact == goldens.facts.end() ? Status() : plan.set_property(to, fact->second);
  };
  ASSAY_CHECK(keep(fact_of(goldens, kReferenceLane), label));
  ASSAY_CHECK(keep(kMachineProperty, "goldens.machine"));
  return keep(std::string(kKnownDeviations), std::string(kKnownDeviations));
}

// What a run keeps of its lanes besides their builds. The machine may change while a run goes on.
Status keep_facts(const RunConfig& config, const Lanes& lanes, const std::vector<ServerInfo>& infos,
                  RunPlan& plan, const RunObserver& observer) {
  for (std::size_t i = 0; i < lanes.servers.size(); ++i) {
    ASSAY_CHECK(plan.set_property(lanes.labels[i], infos[i].version));
  }
  if (!infos.empty()) {
    ASSAY_TRY(const std::string first, plan.agree_on(kMachineProperty, infos.front().machine));
    if (first != infos.front().machine && observer.note) {
      observer.note(fmt::format("the run was begun on another machine. Then: {}. Now: {}", first,
                                infos.front().machine));
    }
  }
  if (config.records && !infos.empty()) {
    ASSAY_CHECK(plan.set_property(kNoGradients, infos.front().gradients ? "false" : "true"));
  }
  if (config.goldens) {
    ASSAY_CHECK(keep_facts_of(*config.goldens, lanes.specs.back().label, plan));
  }
  // Known deviations of the tables, if the run's references are in them; none between two
  // frameworks.
  for (std::size_t i = 0; i < lanes.specs.size(); ++i) {
    if (!lanes.specs[i].reference_functions) continue;
    if (!lanes.server_of[i]) continue;
    return plan.set_property(kKnownDeviations, infos[*lanes.server_of[i]].known_deviations);
  }
  return {};
}

// The run can start: the plan, the effect of a retest and the first properties become durable
// together.
Status begin_run(const RunConfig& config, const Properties& properties, RunPlan& plan) {
  Properties stored;
  for (const auto& [key, value] : properties) {
    ASSAY_TRY(stored[key], plan.agree_on(key, value));
  }
  ASSAY_CHECK(check_same(config, properties, stored));
  if (!joins(config)) {
    for (const auto& [key, value] : config.rerun_flags) {
      ASSAY_CHECK(plan.set_property(key, value));
    }
  }
  return plan.commit();
}

Result<RunEnding> run_session(const RunConfig& config, Policies policies, RunClaims& claims,
                              Lanes& lanes, std::vector<SpawnedSlot> ahead, Totals& totals,
                              const RunObserver& observer, std::function<void()> complete) {
  Recorder recorder(config, std::move(policies), claims, totals, observer);
  std::move(lanes.retry_servers.begin(), lanes.retry_servers.end(),
            std::back_inserter(lanes.servers));
  Session session(config, recorder, claims, observer, std::move(lanes.servers),
                  std::move(lanes.specs), std::move(ahead), std::move(complete));
  return session.run();
}

}  // namespace

Result<Policies> load_policies(const wire::CaseSettingsT& settings) {
  ASSAY_TRY(const LanePackage package, LanePackage::find());
  const std::filesystem::path file = package.python_path / "assay" / "policies.toml";
  ASSAY_TRY(const std::string text, read_file(file));
  ASSAY_TRY(Policies policies,
            Policies::parse(text, file.string(), {settings.atol, settings.rtol, true, {}}));
  ASSAY_CHECK(policies.add(settings.thresholds));
  return policies;
}

Result<PlanSummary> plan_run(const RunConfig& config) {
  ASSAY_TRY(const std::unique_ptr<Store> store, open_store(store_of(config), StoreMode::create));
  Properties properties = case_settings(config);
  ASSAY_TRY(const Policies policies, load_policies(config.settings));
  properties["version.policies"] = policies.version();
  ASSAY_CHECK(check_properties(config, properties, *store));
  ASSAY_TRY(Plan plan, make_plan(config, *store));
  ASSAY_CHECK(begin_run(config, properties, *store));
  return PlanSummary{plan.totals, std::move(plan.first_invalid), store->added()};
}

Result<RunSummary> run_engine(const RunConfig& config, const RunObserver& observer) {
  ASSAY_CHECK(make_run_folder(config.folder));
  ASSAY_TRY(const std::unique_ptr<Store> opened,
            open_store(store_of(config), joins(config) ? StoreMode::existing : StoreMode::create));
  Store& store = *opened;
  Properties properties = verdict_settings(config);
  ASSAY_TRY(Policies policies, load_policies(config.settings));
  properties["version.policies"] = policies.version();
  ASSAY_CHECK(check_properties(config, properties, store));
  // Servers import while the rest is planned. Without a case to run or an earlier result, whose
  // build has to be this one, nothing is imported.
  Lanes lanes;
  const auto start = [&]() -> Status {
    ASSAY_TRY(lanes, start_lanes(config, observer));
    return {};
  };
  ASSAY_TRY(Plan plan, make_plan(config, store, start));
  ASSAY_TRY(std::vector<SpawnedSlot> ahead, slots_ahead(config, lanes, plan.totals.planned));

  RunSummary summary;
  ASSAY_TRY(summary.frameworks, wait_for_lanes(config, lanes, observer));
  for (std::size_t i = 0; i < lanes.servers.size(); ++i) {
    const std::string key = lanes.labels[i] + std::string(kBuildSuffix);
    properties[key] = summary.frameworks[i].build;
    if (config.rerun) ASSAY_CHECK(store.set_property(key, properties[key]));
  }
  if (config.goldens) {  // of the last lane
    properties[lanes.specs.back().label + std::string(kBuildSuffix)] =
        build_of_goldens(*config.goldens);
  }
  // The other properties have been checked.
  if (const Status same = check_properties(config, properties, store); !same) {
    if (same.error().kind == ErrorKind::usage) {
      if (observer.another_build) observer.another_build();
      return tl::unexpected(same.error());
    }
    return fail(fmt::format("{}; nothing has run: repair that, then start the same command again",
                            same.error().message));
  }
  ASSAY_CHECK(keep_facts(config, lanes, summary.frameworks, store, observer));
  ASSAY_CHECK(begin_run(config, properties, store));
  if (observer.planned) observer.planned(plan.totals);
  for (const InvalidLine& line : plan.first_invalid) {
    if (observer.note) observer.note(fmt::format("invalid, {}: {}", line.where, line.message));
  }
  if (plan.totals.planned > 0) {
    const auto complete = [&] {
      if (observer.complete) observer.complete(store);
    };
    ASSAY_TRY(summary.ending, run_session(config, std::move(policies), store, lanes,
                                          std::move(ahead), plan.totals, observer, complete));
  }
  summary.totals = plan.totals;
  return summary;
}

Result<RunEnding> run_claims(const RunConfig& config, RunClaims& claims,
                             const RunObserver& observer) {
  ASSAY_CHECK(make_run_folder(config.folder));
  ASSAY_TRY(Policies policies, load_policies(config.settings));
  ASSAY_TRY(Lanes lanes, start_lanes(config, observer));
  ASSAY_CHECK(wait_for_lanes(config, lanes, observer));
  Totals totals;
  return run_session(config, std::move(policies), claims, lanes, {}, totals, observer, {});
}

}  // namespace assay
