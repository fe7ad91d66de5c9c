#include "chain/plan/recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "chain/plan/launcher.h"
#include "chain/plan/recipe_scope.h"
#include "chain/plan/recipe_tree.h"

namespace assay::chain::plan {
namespace {

using Statements = std::vector<Statement>;

// How a block ended.
enum class Flow { on, next, stop };

constexpr std::array<std::pair<std::string_view, StageKind>, 8> kStageKinds{{
    {"prepare", StageKind::prepare},
    {"train", StageKind::train},
    {"eval", StageKind::eval},
    {"export", StageKind::export_model},
    {"convert", StageKind::convert},
    {"server", StageKind::server},
    {"infer", StageKind::infer},
    {"compare", StageKind::compare},
}};

// NAME and TEXT of `NAME = TEXT`, or of `NAME in TEXT`.
struct Assignment {
  std::string_view name;
  std::string_view text;
};

Result<Assignment> assignment(std::string_view rest, std::string_view sign) {
  const std::size_t at = rest.find(sign);
  if (at == std::string_view::npos) return fail(fmt::format("expected NAME{}TEXT", sign));
  return Assignment{trimmed(rest.substr(0, at)), trimmed(rest.substr(at + sign.size()))};
}

struct Change {
  std::string from;
  std::string to;
};

// Whether there was something to change.
bool apply(const Change& change, std::string& text) {
  bool changed = false;
  if (change.from.empty()) return changed;
  for (std::size_t at = 0; (at = text.find(change.from, at)) != std::string::npos;
       at += change.to.size()) {
    text.replace(at, change.from.size(), change.to);
    changed = true;
  }
  return changed;
}

class Cook {
 public:
  Cook(PlanBuilder& builder, const Statements& shared, const Statements& own)
      : builder_(builder), scope_(builder), shared_(shared), own_(own) {}

  Status cook() {
    ASSAY_CHECK(all(shared_));
    ASSAY_CHECK(all(own_));
    for (const auto& [role, whole] : scope_.cut_values()) {
      builder_.warn(
          fmt::format("line {}: the suite's bash cuts `{}` at its first colon; --fix keeps it",
                      builder_.params().line(role), whole));
    }
    return {};
  }

 private:
  Result<Flow> all(const Statements& statements) {
    bool open = false;  // whether an else may still come true
    for (const Statement& statement : statements) {
      Result<Flow> flow = one(statement, open);
      if (!flow && !told_) {
        told_ = true;
        flow.error().message =
            fmt::format("dialect {}, line {}: {}", builder_.params().layout().suite->name,
                        statement.line, flow.error().message);
      }
      if (!flow || *flow != Flow::on) return flow;
    }
    return Flow::on;
  }

  Result<Flow> one(const Statement& statement, bool& open) {
    const std::string_view word = statement.word;
    if (word == "if" || word == "elif" || word == "else") return branch(statement, open);
    if (word == "for") return loop(statement);
    if (word == "call") return call(statement.rest);
    if (word == "next") return Flow::next;
    if (word == "stop") return Flow::stop;
    if (word == "define") {
      definitions_[std::string(statement.rest)] = &statement.body;
      return Flow::on;
    }
    ASSAY_CHECK(word == "run" ? run(statement) : simple(statement));
    return Flow::on;
  }

  Result<Flow> branch(const Statement& statement, bool& open) {
    if (statement.word == "if") open = true;
    if (!open) return Flow::on;
    if (statement.word != "else") {
      ASSAY_TRY(const bool holds, scope_.holds(statement.rest));
      if (!holds) return Flow::on;
    }
    open = false;
    return all(statement.body);
  }

  Result<Flow> loop(const Statement& statement) {
    ASSAY_TRY(const Assignment given, assignment(statement.rest, " in "));
    ASSAY_TRY(const std::string list, scope_.text(given.text));
    std::size_t number = 0;
    for (const std::string& part : split_at(list, '|')) {
      scope_.enter();
      scope_.let(given.name, part);
      scope_.let(std::string(given.name) + "#", fmt::format("{}", number++));
      Result<Flow> flow = all(statement.body);
      scope_.leave();
      if (!flow || *flow == Flow::stop) return flow;
    }
    return Flow::on;
  }

  Result<Flow> call(std::string_view name) {
    const auto found = definitions_.find(name);
    if (found == definitions_.end()) return fail(fmt::format("nothing is defined as `{}`", name));
    constexpr int kDeepest = 20;
    if (++depth_ > kDeepest) return fail(fmt::format("`{}` calls itself", name));
    scope_.enter();
    Result<Flow> flow = all(*found->second);
    scope_.leave();
    --depth_;
    if (!flow || *flow == Flow::stop) return flow;
    return Flow::on;  // `next` in a definition ends it
  }

  Status simple(const Statement& statement) {
    const std::string_view word = statement.word;
    if (word == "let" || word == "set") {
      ASSAY_TRY(const Assignment given, assignment(statement.rest, "="));
      ASSAY_TRY(std::string value, scope_.text(given.text));
      if (word == "let") {
        scope_.let(given.name, std::move(value));
      } else {
        scope_.set(given.name, std::move(value));
      }
      return {};
    }
    if (word == "gpus") return gpus(statement.rest);
    if (word == "edit") return edit(statement.rest);
    if (word == "rewrite") return rewrite(statement.rest);
    if (word == "take") return take(statement.rest);
    if (word == "forget") {
      scope_.set("@" + std::string(statement.rest), "");
      return {};
    }
    ASSAY_TRY(std::string said, scope_.text(statement.rest));
    if (word == "warn") {
      if (std::find(warned_.begin(), warned_.end(), said) == warned_.end()) {
        warned_.push_back(said);
        builder_.warn(std::move(said));
      }
    } else if (word == "refuse") {
      told_ = true;  // the user's question is at fault, and no line of the dialect
      return usage_error(std::move(said));
    } else if (word == "nothing") {
      builder_.may_be_empty(std::move(said));
    } else if (word == "folder") {
      builder_.set_folder(std::move(said), "results_python.log");
    } else if (word == "results") {
      builder_.set_folder(builder_.folder(), std::move(said));
    } else {
      return fail(fmt::format("what is `{}`?", word));
    }
    return {};
  }

  Status gpus(std::string_view name) {
    ASSAY_TRY(const std::string text, scope_.value(name));
    ASSAY_TRY(const params::GpuEntry entry, params::parse_gpu_entry(text));
    const auto let = [&](std::string_view part, std::string value) {
      scope_.let(fmt::format("{}.{}", name, part), std::move(value));
    };
    const PlanOptions& options = builder_.options();
    const bool on_cpu = trains_on_cpu(entry, options);
    // The launcher takes an empty CUDA_VISIBLE_DEVICES for a GPU without a name.
    const bool launched = entry.many_machines() || options.ps_servers > 0;
    const std::string ids = fmt::format("{}", fmt::join(entry.ids, ","));
    scope_.let(name, entry.gpus);
    let("entry", text);
    let("sort", entry.many_machines()  ? "machines"
                : entry.on_cpu()       ? "cpu"
                : entry.ids.size() > 1 ? "many"
                                       : "one");
    let("ips", entry.ips());
    let("nodes", fmt::format("{}", std::max<std::size_t>(1, entry.hosts.size())));
    let("visible", !on_cpu ? ids : launched ? "" : "-");
    let("device", on_cpu ? "cpu" : "gpu " + ids);
    let("first", on_cpu ? "-" : entry.ids.front());
    let("first_device", on_cpu ? "cpu" : "gpu " + entry.ids.front());
    let("number", on_cpu ? "0" : entry.ids.front());
    let("servers", options.ps_servers > 0
                       ? fmt::format("_ps_{}x{}", options.ps_servers, options.ps_trainers)
                       : "");
    return {};
  }

  // What becomes what, as `A => B` says. Blanks at the ends count where they are quoted.
  Result<Change> change(std::string_view rest) {
    ASSAY_TRY(const Assignment given, assignment(rest, "=>"));
    ASSAY_TRY(const std::string from, scope_.text(given.name));
    ASSAY_TRY(const std::string to, scope_.text(given.text));
    const auto bare = [](std::string_view text) {
      const bool quoted = text.size() > 1 && text.front() == '"' && text.back() == '"';
      return std::string(quoted ? text.substr(1, text.size() - 2) : text);
    };
    return Change{bare(from), bare(to)};
  }

  Status edit(std::string_view rest) {
    ASSAY_TRY(const Change wanted, change(rest));
    for (const params::SectionLayout& section : builder_.params().layout().sections) {
      for (const params::Place& place : section.places) {
        if (place.role.empty()) continue;
        ASSAY_TRY(std::string value, scope_.value(place.role));
        if (apply(wanted, value)) scope_.set(place.role, std::move(value));
      }
    }
    return {};
  }

  Status rewrite(std::string_view rest) {
    ASSAY_TRY(Change wanted, change(rest));
    rewrites_.push_back(std::move(wanted));
    return {};
  }

  Status take(std::string_view prefix) {
    ASSAY_TRY(const std::string start, scope_.text(prefix));
    for (const params::SectionLayout& section : builder_.params().layout().sections) {
      for (const params::Place& place : section.places) {
        if (!place.role.starts_with(start)) continue;
        const std::string name(place.role.substr(start.size()));
        ASSAY_TRY(std::string value, scope_.value(place.role));
        scope_.let(name, std::move(value));
        scope_.let(name + ".key", std::string(builder_.params().key(place.role)));
      }
    }
    return {};
  }

  Status run(const Statement& statement) {
    ASSAY_TRY(const std::string whole, scope_.text(statement.rest));
    const std::size_t blank = whole.find(' ');
    const std::string_view kind = std::string_view(whole).substr(0, blank);
    const auto known = std::find_if(kStageKinds.begin(), kStageKinds.end(),
                                    [&](const auto& one) { return one.first == kind; });
    if (known == kStageKinds.end() || blank == std::string::npos) {
      return fail("expected `run KIND NAME`");
    }
    Stage stage;
    stage.kind = known->second;
    stage.device = "cpu";
    stage.name = trimmed(std::string_view(whole).substr(blank));
    stage.log = builder_.folder() + "/" + stage.name;
    std::replace(stage.log.begin() + static_cast<std::ptrdiff_t>(builder_.folder().size()) + 1,
                 stage.log.end(), '/', '_');
    std::string label;
    bool compared = false;
    for (const Statement& line : statement.body) {
      if (line.word == "as") {
        ASSAY_TRY(label, scope_.text(line.rest));
      }
      if (line.word == "log") stage.exact_log = true;
      Status given = attribute(stage, line);
      if (!given) {
        return fail(fmt::format("line {}: {}", line.line, given.error().message));
      }
      if (line.word == "compares") {
        ASSAY_TRY(compared, is_full_precision(line.rest));
      }
    }
    if (stage.kind == StageKind::train) stage.on_cpu = stage.device == "cpu";
    if (stage.device != "cpu") stage.needs_device = builder_.options().device;
    if (stage.kind == StageKind::infer && stage.device.starts_with("gpu")) {
      stage.asks_for_gpu = true;
    }
    for (const Change& change : rewrites_) apply(change, stage.command);
    const std::size_t index = builder_.add(std::move(stage));
    if (!label.empty()) scope_.set("@" + label, fmt::format("{}", index));
    const std::string* dynamic = scope_.variable("@dynamic");
    if (compared && dynamic != nullptr && !dynamic->empty()) {
      add_comparison(std::stoul(*dynamic), index);
    }
    return {};
  }

  Result<bool> is_full_precision(std::string_view shape) {
    return scope_.text(shape).map(
        [](const std::string& text) { return params::is_absent(text) || text == "fp32"; });
  }

  // A stage that compares what two others inferred.
  void add_comparison(std::size_t dynamic, std::size_t infer) {
    const std::string& log = builder_.stage(infer).log;
    Stage stage;
    stage.kind = StageKind::compare;
    stage.name = builder_.stage(infer).name + "_against_dynamic";
    stage.argv = {builder_.options().self,     "chain",    "compare", "--dynamic",
                  builder_.stage(dynamic).log, "--static", log};
    stage.command = shell_line(stage.argv);
    stage.log = log.substr(0, log.rfind('.')) + "_against_dynamic.log";
    stage.device = "cpu";
    stage.needs = {dynamic, infer};
    builder_.add(std::move(stage));
  }

  Status attribute(Stage& stage, const Statement& line) {
    const std::string_view word = line.word;
    if (word == "as" || word == "compares") return {};
    if (word == "after") return after(stage, line.rest);
    if (word == "same_as") {
      ASSAY_CHECK(after(stage, line.rest));
      if (!stage.needs.empty()) stage.same_log_as = stage.needs.back();
      return {};
    }
    ASSAY_TRY(std::string text, scope_.text(line.rest));
    if (word == "env") {
      for (std::string& entry : split_at(text, ';')) {
        if (entry.find('=') != std::string::npos) stage.environment.push_back(std::move(entry));
      }
    } else if (word == "visible") {
      for (std::string& entry : cuda_environment(text)) stage.environment.push_back(entry);
    } else if (word == "hosts") {
      stage.hosts = split_at(text, ',');
    } else if (word == "expands") {
      stage.expands = true;
    } else if (word == "speed") {
      stage.tells_speed = true;
      stage.own_argv = {builder_.options().self, "chain", "speed"};
    } else if (word == "quiet") {
      stage.shows_log = false;
    } else if (std::string* field = text_field(stage, word)) {
      *field = std::move(text);
    } else {
      return fail(fmt::format("what is `{}`?", word));
    }
    return {};
  }

  static std::string* text_field(Stage& stage, std::string_view word) {
    return word == "command"   ? &stage.command
           : word == "log"     ? &stage.log
           : word == "own_log" ? &stage.log
           : word == "in"      ? &stage.directory
           : word == "makes"   ? &stage.output
           : word == "reads"   ? &stage.input
           : word == "device"  ? &stage.device
           : word == "program" ? &stage.needs_program
           : word == "stdin"   ? &stage.stdin_file
           : word == "module"  ? &stage.needs_module
                               : nullptr;
  }

  // The stages under these labels, where there are such.
  Status after(Stage& stage, std::string_view labels) {
    for (const std::string& label : split_at(labels, ' ')) {
      const std::string* index = scope_.variable("@" + label);
      if (index != nullptr && !index->empty()) stage.needs.push_back(std::stoul(*index));
    }
    return {};
  }

  PlanBuilder& builder_;
  RecipeScope scope_;
  const Statements& shared_;
  const Statements& own_;
  std::map<std::string, const Statements*, std::less<>> definitions_;
  std::vector<Change> rewrites_;
  std::vector<std::string> warned_;
  int depth_ = 0;
  bool told_ = false;
};

}  // namespace

Status plan_recipe(PlanBuilder& builder) {
  const params::Layout& layout = builder.params().layout();
  ASSAY_TRY(const Statements shared, read_statements(layout.suite->shared, 0));
  ASSAY_TRY(const Statements own, read_statements(layout.recipe, layout.recipe_line));
  return Cook(builder, shared, own).cook();
}

}  // namespace assay::chain::plan
