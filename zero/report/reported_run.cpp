#include "zero/report/reported_run.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <filesystem>
#include <numeric>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/lookup.h"
#include "base/json_text.h"
#include "base/log.h"
#include "zero/report/running.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_points = 6000, most_buckets = 2000, least_points = 8, most_marks = 100;
constexpr std::int64_t config_bytes = 1 << 20;
constexpr int most_named_runs = 5;

bool has_result(const std::string& folder) {
  for (const char* place : {"/model", "/adapter"}) {
    const std::vector<std::string> names = names_in(folder + place);
    if (std::any_of(names.begin(), names.end(), [](const auto& name) { return name.ends_with(".safetensors"); }))
      return true;
  }
  return false;
}

void read_settings(ReportedRun& run) {
  const std::string path = run.folder + "/config.toml";
  if (!is_file(path)) {
    run.notes.push_back("config.toml is missing: its settings are unknown");
    return;
  }
  try {
    const std::string content = read_text_file(path, config_bytes);
    run.header = run_header_of(content);
    run.settings = parse_settings(content);
  } catch (const InputError& error) {
    const std::string why = error.what();
    run.notes.push_back(why.starts_with("is not") ? "config.toml " + why : why);
  }
}

std::optional<double> last_of(const MetricsTable& table, const char* field) {
  const MetricsSeries* series = table.find(field);
  return series ? std::optional(series->values.back()) : std::nullopt;
}

std::vector<double> finite_values(const MetricsTable& table, const char* field) {
  std::vector<double> values;
  if (const MetricsSeries* series = table.find(field))
    std::copy_if(series->values.begin(), series->values.end(), std::back_inserter(values),
                 [](double value) { return std::isfinite(value); });
  return values;
}

RunFigures figures_of(const MetricsTable& table) {
  RunFigures figures;
  figures.steps = table.steps.empty() ? 0 : table.steps.back();
  figures.final_loss = last_of(table, "loss");
  figures.validation_loss = last_of(table, "validation_loss");
  figures.seconds = last_of(table, "seconds");
  figures.tokens = last_of(table, "tokens");
  if (const auto losses = finite_values(table, "loss"); !losses.empty())
    figures.best_loss = *std::min_element(losses.begin(), losses.end());
  if (const auto peaks = finite_values(table, "peak_bytes"); !peaks.empty())
    figures.peak_bytes = *std::max_element(peaks.begin(), peaks.end());
  if (auto rates = finite_values(table, "tokens_per_second"); !rates.empty()) {
    const auto middle = rates.begin() + std::ptrdiff_t(rates.size() / 2);
    std::nth_element(rates.begin(), middle, rates.end());
    figures.rate = *middle;
  }
  return figures;
}

/// Divides a run's or a sparse field's points, where `numbers` may be written for a field.
BucketEdges edges_for(std::size_t points, std::size_t numbers) {
  if (points <= std::clamp(numbers, least_points, most_points)) return bucket_edges(points, points);
  return bucket_edges(points, std::clamp(numbers / 3, least_points, most_buckets));  // mean, low and high
}

/// The step in the middle of each bucket of rows.
std::vector<std::int64_t> middle_steps(const MetricsTable& table, const MetricsSeries* series,
                                       const BucketEdges& edges) {
  std::vector<std::int64_t> steps;
  for (std::size_t b = 0; b + 1 < edges.size(); ++b) {
    const std::size_t middle = (edges[b] + edges[b + 1] - 1) / 2;
    steps.push_back(table.steps[series ? series->rows[middle] : middle]);
  }
  return steps;
}

ReportedCurve curve_of(const MetricsTable& table, const MetricsSeries& series, const BucketEdges& of_run,
                       std::size_t numbers) {
  const bool is_full = series.rows.size() == table.steps.size();
  const BucketEdges edges = is_full ? of_run : edges_for(series.rows.size(), numbers);
  ReportedCurve curve;
  curve.field = series.name;
  if (!is_full) curve.steps = middle_steps(table, &series, edges);
  curve.points = thinned(series.values, edges);
  curve.is_thinned = edges.size() <= series.rows.size();
  for (std::size_t i = 0; i < series.values.size() && curve.not_finite_at.size() < std::min(most_marks, numbers); ++i)
    if (!std::isfinite(series.values[i])) curve.not_finite_at.push_back(table.steps[series.rows[i]]);
  return curve;
}

/// A field of all lines at the buckets' middles; empty for another.
std::vector<double> places(const MetricsTable& table, const char* field, const BucketEdges& edges) {
  const MetricsSeries* series = table.find(field);
  std::vector<double> found;
  if (!series || series->rows.size() != table.steps.size()) return found;
  for (std::size_t b = 0; b + 1 < edges.size(); ++b) found.push_back(series->values[(edges[b] + edges[b + 1] - 1) / 2]);
  const bool ascend = std::is_sorted(found.begin(), found.end()) &&
                      std::all_of(found.begin(), found.end(), [](double place) { return std::isfinite(place); });
  return ascend ? found : std::vector<double>();
}

void add_curves(const MetricsTable& table, std::size_t numbers, ReportedRun& run) {
  if (table.steps.empty()) return;
  const std::size_t share = numbers / (table.series.size() + 3);
  const BucketEdges edges = edges_for(table.steps.size(), share);
  run.steps = middle_steps(table, nullptr, edges);
  run.tokens = places(table, "tokens", edges);
  run.seconds = places(table, "seconds", edges);
  for (const MetricsSeries& series : table.series) run.curves.push_back(curve_of(table, series, edges, share));
}

void add_notes(const MetricsTable& table, ReportedRun& run) {
  std::string not_finite;
  for (const ReportedCurve& curve : run.curves)
    if (curve.points.not_finite > 0)
      not_finite += text(not_finite.empty() ? "" : ", ", curve.field, " ", curve.points.not_finite);
  if (!not_finite.empty()) run.notes.push_back("values that are not finite, shown as gaps: " + not_finite);
  if (run.restarts > 0)
    run.notes.push_back(text("restarted ", run.restarts == 1 ? "once" : counted(run.restarts, "time"),
                             "; the last value of a step counts"));
  if (table.damaged > 0)
    run.notes.push_back(text(counted(table.damaged, "damaged line"), " of metrics.jsonl left out"));
  if (table.is_torn && run.state != RunState::running)
    run.notes.push_back("the last line of metrics.jsonl is cut, and left out");
  if (table.dropped > 0) run.notes.push_back(text("only the first ", MetricsTable::most_series, " fields are shown"));
  if (table.steps.empty()) run.notes.push_back("no step is logged yet");
  const auto thin = std::find_if(run.curves.begin(), run.curves.end(), [](const auto& one) { return one.is_thinned; });
  if (thin != run.curves.end())
    run.notes.push_back(text(table.steps.size(), " lines are drawn as ", thin->points.mean.size(),
                             " buckets: the line is the mean of a bucket, the band its smallest and largest value"));
}

/// Bytes of a text in a page's JSON, at most.
std::size_t bytes_in_page(const std::string& words) {
  std::size_t bytes = 0;
  for (const char c : words)
    bytes += static_cast<unsigned char>(c) < 0x20 || c == '<' ? 6 : c == '"' || c == '\\' ? 2 : 1;
  return bytes;
}

/// Adds the newest samples for which there is room.
void add_samples(const std::string& path, std::size_t room, ReportedRun& run) {
  std::size_t held = 0;
  bool all = true;
  std::deque<std::pair<ReportedSamples, std::size_t>> steps;  // with their bytes
  const auto drop = [&](auto from, auto to) {
    for (auto step = from; step != to; ++step) held -= step->second;
    steps.erase(from, to);
  };
  for_each_sample(path, [&](SampleLine&& line) {
    constexpr std::size_t frame = 32;  // brackets and names
    const std::size_t bytes = bytes_in_page(line.sample.prompt) + bytes_in_page(line.sample.text) + frame;
    if (bytes > room) {
      all = false;
      return;
    }
    if (!steps.empty() && line.step < steps.back().first.step)  // the run went back
      drop(std::find_if(steps.begin(), steps.end(), [&](const auto& one) { return one.first.step >= line.step; }),
           steps.end());
    if (steps.empty() || steps.back().first.step != line.step) steps.push_back({{line.step, {}}, 0});
    steps.back().first.samples.push_back(std::move(line.sample));
    steps.back().second += bytes;
    held += bytes;
    all = all && held <= room;
    while (held > room && steps.size() > 1) drop(steps.begin(), steps.begin() + 1);
    if (held <= room) return;
    steps.back().first.samples.pop_back();
    steps.back().second -= bytes;
    held -= bytes;
  });
  for (auto& [step, bytes] : steps) run.samples.push_back(std::move(step));
  if (!all) run.notes.push_back("only the newest samples have room on the page; samples.jsonl has all");
}

bool is_run(const std::string& folder) {
  return is_folder(folder) && (is_there(folder + "/metrics.jsonl") || is_there(folder + "/.zero_run"));
}

/// The runs within a folder of runs, in words for a message; empty if there are none that can be seen.
std::string runs_within(const std::string& folder) {
  std::string runs;
  int count = 0;
  try {
    for (const std::string& name : is_folder(folder) ? names_in(folder) : std::vector<std::string>())
      if (const std::string path = folder + "/" + name; is_run(path) && ++count <= most_named_runs)
        runs += (runs.empty() ? "" : " ") + path;
  } catch (const UnreadableError&) {  // another user's folder: the message does without
  }
  return runs.empty() ? "" : text("; runs there: ", runs, count > most_named_runs ? " ..." : "");
}

}  // namespace

std::optional<std::int64_t> ReportedRun::planned() const {
  const auto found = settings.find("training.steps");
  if (found == settings.end()) return std::nullopt;
  std::int64_t steps = 0;
  const std::string& word = found->second;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), steps);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return steps;
}

std::string run_folder_of(const std::string& argument) {
  const fs::path path = fs::path(argument).lexically_normal();
  std::string folder = argument;
  if (is_file(argument) && path.filename() == "metrics.jsonl")
    folder = path.has_parent_path() ? path.parent_path().string() : ".";
  else if (!is_there(argument))
    throw InputError(text(argument, ": does not exist: name the output directory of a run"));
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  if (!is_run(folder))
    throw InputError(text(argument,
                          ": is no output directory of a run: it must have metrics.jsonl or .zero_run; name "
                          "job.output_dir of a run",
                          runs_within(folder)));
  return folder;
}

ReportedRun read_run(const std::string& folder, const ReportRoom& room) {
  ReportedRun run;
  run.folder = folder;
  const bool runs = is_running(folder);  // before its records: a run that ends meanwhile is seen once more
  read_settings(run);
  const std::string metrics = folder + "/metrics.jsonl";
  const MetricsTable table = is_there(metrics) ? read_metrics(metrics) : MetricsTable();
  run.figures = figures_of(table);
  const bool complete = run.figures.steps >= run.planned().value_or(1) && has_result(folder);
  run.state = runs ? RunState::running : complete ? RunState::finished : RunState::stopped;
  run.restarts = std::max<std::int64_t>(run.header.start - 1, table.went_back);
  add_curves(table, room.numbers, run);
  add_notes(table, run);
  add_samples(samples_path(folder), room.samples, run);
  return run;
}

void name_runs(std::vector<ReportedRun>& runs) {
  std::vector<std::vector<std::string>> parts;
  for (const ReportedRun& run : runs) {
    parts.emplace_back();
    for (const fs::path& part : fs::path(real_path(run.folder))) parts.back().push_back(part.string());
  }
  const auto ends_alike = [](const auto& a, const auto& b, std::size_t length) {
    return a.size() >= length && b.size() >= length &&
           std::equal(a.end() - std::ptrdiff_t(length), a.end(), b.end() - std::ptrdiff_t(length));
  };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::size_t length = 1;
    const auto is_shared = [&] {
      for (std::size_t other = 0; other < runs.size(); ++other)
        if (other != i && parts[other] != parts[i] && ends_alike(parts[i], parts[other], length)) return true;
      return false;
    };
    while (length < parts[i].size() && is_shared()) ++length;
    fs::path name;
    for (std::size_t k = parts[i].size() - length; k < parts[i].size(); ++k) name /= parts[i][k];
    runs[i].name = name.string();
  }
}

}  // namespace zero
