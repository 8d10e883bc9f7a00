#include "zero/prove/proof.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "base/error.h"
#include "base/files/scratch_folder.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr int refused = static_cast<int>(ExitCode::bad_input);

std::string word_of(Agreement agreement) {
  switch (agreement) {
    case Agreement::reference:
      return "reference";
    case Agreement::bits:
      return "equal to the bit";
    case Agreement::rounding:
      return "equal within rounding";
    case Agreement::different:
      return "DIFFERENT";
    case Agreement::failed:
      return "FAILED";
    case Agreement::refused:
      return "not run";
  }
  return "";
}

std::string explained(const LayoutVerdict& verdict) {
  if (verdict.parting) return "from " + verdict.against + ": " + verdict.parting->describe();
  if (!verdict.words.empty()) return verdict.words;
  if (verdict.agreement == Agreement::reference) return "";
  std::ostringstream words;
  words << (verdict.agreement == Agreement::bits ? "to " : "of ") << verdict.against;
  if (verdict.agreement == Agreement::rounding)
    words << ", " << std::fixed << std::setprecision(0) << 100 * verdict.most << " % of what rounding explains";
  return words.str();
}

void print_row(std::ostream& out, std::size_t number, const std::string& name, const std::string& what,
               const std::string& more) {
  out << std::setw(2) << number << "  " << std::left << std::setw(24) << name << "  " << std::setw(21) << what
      << std::right << (more.empty() ? "" : "  ") << more << '\n'
      << std::flush;
}

nlohmann::ordered_json json_of(const LayoutVerdict& verdict, std::int64_t global) {
  nlohmann::ordered_json object{{"layout", verdict.layout.name},
                                {"is", verdict.layout.describe(global)},
                                {"verdict", word_of(verdict.agreement)},
                                {"against", verdict.against},
                                {"of_bound", verdict.most},
                                {"nearest", verdict.most_of},
                                {"seconds", verdict.seconds}};
  if (!verdict.words.empty()) object["words"] = verdict.words;
  if (verdict.parting)
    object["parts"] = {{"step", verdict.parting->step},
                       {"phase", verdict.parting->phase},
                       {"tensor", verdict.parting->tensor},
                       {"why", verdict.parting->why}};
  return object;
}

const Layout* layout_of(const std::vector<Layout>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Layout& l) { return l.name == name; });
  return found == all.end() ? nullptr : &*found;
}

/// The number for --only: its index in the full list, without the probe.
std::size_t number_of(const std::vector<Layout>& all, const std::string& name) {
  std::size_t number = 0;
  for (const Layout& layout : all) {
    if (!layout.is_probe) ++number;
    if (layout.name == name) break;
  }
  return number;
}

/// Runs the layouts one after the other and collects the outcomes.
class Proof {
 public:
  /// `layouts`: the subset of `all` to run.
  Proof(const ProofOptions& options, const Config& config, const std::vector<Layout>& all,
        const std::vector<Layout>& layouts, std::ostream& out)
      : options_(options),
        all_(all),
        layouts_(layouts),
        global_(global_batch_of(config)),
        precision_(layout_of(all, "reference")->arithmetic()),
        tokens_(global_ * config.row_tokens()),
        folder_("prove", {options.scratch, "name another one by --scratch", options.keep}),
        runs_(run_of(config)),
        out_(out) {}

  std::vector<LayoutVerdict> run() {
    for (const char* name : {"reference", "probe"}) train_first(name);
    const Layout& probe = *layout_of(layouts_, "probe");
    const RoundingBounds bounds(records_.at("reference"), precision_, records_.at("probe"), probe.arithmetic(),
                                tokens_);
    std::vector<LayoutVerdict> verdicts;
    for (const Layout& layout : layouts_) {
      if (layout.is_probe) continue;
      verdicts.push_back(verdict_of(layout, bounds));
      const LayoutVerdict& verdict = verdicts.back();
      print_row(out_, number_of(all_, layout.name), layout.name, word_of(verdict.agreement), explained(verdict));
      if (options_.first && !verdict.is_good()) break;
    }
    return verdicts;
  }
  const std::string& folder() const { return folder_.path(); }

 private:
  ProofRun run_of(const Config& config) const {
    int most = 1;
    for (const Layout& layout : layouts_) most = std::max(most, layout.ranks);
    return {options_.program,
            options_.config,
            options_.overrides,
            options_.steps,
            global_,
            !config.data.validation.empty() || config.data.validation_fraction > 0,
            config.training.on_nonfinite == "rollback",
            std::max(1, options_.cores / most),
            folder_.path()};
  }

  // No verdict is possible without these two.
  void train_first(const std::string& name) {
    const Layout& layout = *layout_of(layouts_, name);
    LayoutRuns::Outcome outcome = runs_.train(layout, nullptr);
    seconds_[name] = outcome.seconds;
    const std::string what = text("the ", name, " (", layout.describe(global_), ") ");
    if (outcome.code == refused) throw InputError(what + "is refused: " + outcome.last_words);
    if (outcome.ended_after)
      throw InputError(what + "is too short: " + outcome.last_words + "; --steps gives another number");
    if (outcome.code != 0) throw Error(text(what, "failed with exit code ", outcome.code, ": ", outcome.last_words));
    records_[name] = std::move(outcome.record);
  }

  LayoutVerdict verdict_of(const Layout& layout, const RoundingBounds& bounds) {
    double seconds = seconds_[layout.name];
    if (!records_.contains(layout.name)) {
      LayoutRuns::Outcome outcome =
          runs_.train(layout, layout.begins_as.empty() ? nullptr : layout_of(layouts_, layout.begins_as));
      seconds = outcome.seconds;
      if (outcome.code != 0) {
        LayoutVerdict verdict;
        verdict.layout = layout;
        verdict.agreement = outcome.code == refused ? Agreement::refused : Agreement::failed;
        verdict.words = outcome.last_words;
        verdict.seconds = seconds;
        return verdict;
      }
      records_[layout.name] = std::move(outcome.record);
    }
    LayoutVerdict verdict = judge(layout, records_, bounds, precision_);
    verdict.seconds = seconds;
    return verdict;
  }

  const ProofOptions& options_;
  const std::vector<Layout>&all_, &layouts_;
  std::int64_t global_;
  std::string precision_;
  std::int64_t tokens_;  // maximum in a step
  ScratchFolder folder_;
  LayoutRuns runs_;
  std::map<std::string, RunRecord> records_;
  std::map<std::string, double> seconds_;
  std::ostream& out_;
};

void write_json(const std::string& path, const std::vector<LayoutVerdict>& verdicts, std::int64_t global) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const LayoutVerdict& verdict : verdicts) all.push_back(json_of(verdict, global));
  std::ofstream file(path);
  file << nlohmann::ordered_json{{"version", 1}, {"layouts", all}}.dump(1) << '\n';
  if (!file) throw Error(path + ": cannot be written");
}

}  // namespace

int prove(const ProofOptions& asked, std::ostream& out) {
  const Config config = load_config(asked.config, asked.overrides);
  ProofOptions options = asked;
  options.steps = std::min(asked.steps, config.training.steps.value_or(asked.steps));
  if (options.steps < 2)
    throw InputError((asked.steps < 2 ? "--steps" : config.where("training.steps")) +
                     std::string(" must be at least 2: a run is stopped in the middle of them, too"));
  const std::int64_t global = global_batch_of(config);
  const std::vector<Layout> all = layouts_of(config, options.limits), layouts = chosen(all, options.only);
  if (options.list) {
    for (const Layout& layout : layouts)
      if (!layout.is_probe) print_row(out, number_of(all, layout.name), layout.name, layout.describe(global), "");
    return 0;
  }
  if (!options.json.empty() && !std::ofstream(options.json, std::ios::app))
    throw InputError("--json " + options.json + ": cannot be written: " + std::strerror(errno));
  std::size_t count = layouts.size() - 1;
  out << count << (count == 1 ? " layout, " : " layouts, ") << options.steps << " steps of " << global
      << " sequences each, " << all.front().arithmetic() << '\n'
      << std::flush;
  Proof proof(options, config, all, layouts, out);
  const std::vector<LayoutVerdict> verdicts = proof.run();
  const auto bad = std::count_if(verdicts.begin(), verdicts.end(), [](const LayoutVerdict& v) { return !v.is_good(); });
  const auto missing = std::count_if(verdicts.begin(), verdicts.end(),
                                     [](const LayoutVerdict& v) { return v.agreement == Agreement::refused; });
  if (!options.json.empty()) write_json(options.json, verdicts, global);
  if (missing > 0) out << missing << " of " << count << " layouts could not be run\n";
  if (bad > 0)
    out << bad << " of " << count << " layouts differ\n";
  else
    out << "all " << count - std::size_t(missing) << " layouts agree\n";
  if (options.keep) out << "the records are in " << proof.folder() << '\n';
  return bad > 0 ? 1 : 0;
}

}  // namespace zero
