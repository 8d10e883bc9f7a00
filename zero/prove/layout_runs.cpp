#include "zero/prove/layout_runs.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "base/process/child_process.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t told_lines = 6;

std::string last_error(const std::string& log) {
  const std::string said = "error: ";
  std::ifstream file(log);
  std::vector<std::string> errors, all;
  for (std::string line; std::getline(file, line);) {
    if (line.find("error:") != line.npos) errors.push_back(line);
    all.push_back(line);
  }
  if (!errors.empty()) return errors.front().substr(errors.front().starts_with(said) ? said.size() : 0);
  std::string words;
  for (std::size_t i = all.size() > told_lines ? all.size() - told_lines : 0; i < all.size(); ++i)
    words += all[i] + "\n";
  return words;
}

bool tells_of_room(const std::string& words, const std::string& folder) {
  const auto has = [&](const char* piece) { return words.find(piece) != words.npos; };
  return has(folder.c_str()) && (has("its disk has room for") || has("No space left"));
}

}  // namespace

int LayoutRuns::start(const Layout& layout, const std::string& record, std::int64_t steps,
                      const std::vector<std::string>& more) {
  std::vector<std::string> words;
  if (layout.ranks > 1) {
    words = {"mpirun", "--bind-to", "none", "--oversubscribe", "-np", std::to_string(layout.ranks)};
    if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  }
  words.insert(words.end(), {run_.program, run_.config});
  std::vector<std::string> settings = run_.overrides;
  for (const std::string& setting : layout.overrides(run_.global_batch_size)) settings.push_back(setting);
  settings.push_back("job.output_dir=" + path("run"));
  settings.push_back("offload.nvme_dir=" + path("disk"));
  if (run_.goes_back) settings.emplace_back("training.on_nonfinite=skip");
  if (run_.has_validation) settings.emplace_back("training.validation_interval=0");
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  words.insert(words.end(), {"--record", record, "--steps", std::to_string(steps)});
  words.insert(words.end(), more.begin(), more.end());
  fs::create_directories(path("disk"));
  return run_program_to_end(words, {text("OMP_NUM_THREADS=", run_.threads + (layout.more_threads ? 1 : 0))},
                            path("log"));
}

LayoutRuns::Outcome LayoutRuns::train(const Layout& layout, const Layout* begins) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string record = path(layout.name + ".jsonl");
  Outcome outcome;
  if (begins) outcome.code = start(*begins, path("first half.jsonl"), half(), {"--record-checkpoint"});
  if (outcome.code == 0)
    outcome.code = start(layout, record, run_.steps, {begins ? "--record-resume" : "--record-anew"});
  if (outcome.code == 0) outcome.record = read_record(record);
  if (outcome.code != 0) {
    outcome.last_words = last_error(path("log"));
    if (tells_of_room(outcome.last_words, run_.folder))
      outcome.last_words += ". That folder is zero_prove's: --scratch puts it on another disk";
  } else if (outcome.record.steps.empty() || outcome.record.steps.rbegin()->first != run_.steps) {
    outcome.code = 1;
    outcome.ended_after = outcome.record.steps.empty() ? 0 : outcome.record.steps.rbegin()->first;
    outcome.last_words = text("the run ended after ", *outcome.ended_after, " of ", counted(run_.steps, "step"));
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

}  // namespace zero
