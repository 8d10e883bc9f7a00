#include "zero/train/metrics.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/lookup.h"
#include "base/files/new_file.h"
#include "base/files/transfer.h"
#include "base/log.h"

namespace zero {
namespace {

/// The step of an object in a line.
std::optional<std::int64_t> step_of(const std::string& line) {
  const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("step") || !object["step"].is_number_integer()) return std::nullopt;
  return object["step"].get<std::int64_t>();
}

/// Calls `each` with every line that has a line end, without that end.
template <class Each>
void for_each_line(const File& file, const Each& each) {
  constexpr std::int64_t block = 1 << 20;
  std::string held;
  for (std::int64_t begin = 0; begin < file.size(); begin += block) {
    const auto kept = held.size();
    held.resize(kept + std::size_t(std::min(block, file.size() - begin)));
    held.resize(kept + std::size_t(file.read_up_to(held.data() + kept, std::int64_t(held.size() - kept), begin)));
    std::size_t done = 0;
    for (std::size_t end; (end = held.find('\n', done)) != std::string::npos; done = end + 1)
      each(held.substr(done, end - done));
    held.erase(0, done);
  }
}

/// The lines in a file for steps up to a last step.
struct Written {
  std::int64_t step = 0;                        // of the last such line
  std::int64_t end = 0;                         // position after that line
  std::int64_t whole = 0;                       // bytes at the beginning, before any damaged line
  std::string behind;                           // the lines after these, without the damaged ones
  std::int64_t damaged = 0, first_damaged = 0;  // their number, and the first one's line number from 1
};

Written written_until(const std::string& path, std::int64_t last_step, FileCalls& calls) {
  Written written;
  if (facts_of(path, calls).kind == FileFacts::Kind::absent) return written;
  std::int64_t number = 0, end = 0, damaged = 0, first_damaged = 0;
  bool later = false;  // a line after the last step was seen
  for_each_line(File::open(path, calls), [&](const std::string& line) {
    ++number;
    end += std::int64_t(line.size()) + 1;
    const std::optional<std::int64_t> step = step_of(line);
    if (!step && damaged++ == 0) first_damaged = number;
    later = later || step.value_or(0) > last_step;
    if (!step && !later && written.step < last_step) {  // the damaged line may belong to a step that is kept
      written.damaged = damaged;
      written.first_damaged = first_damaged;
    }
    if (!step || *step > last_step) return;
    if (damaged == 0)
      written.whole = end;
    else
      written.behind += line + '\n';
    written.step = *step;
    written.end = end;
    written.damaged = damaged;
    written.first_damaged = first_damaged;
  });
  return written;
}

/// Returns the lines of a text for steps up to `last_step`.
std::string lines_until(const std::string& text, std::int64_t last_step) {
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (const auto step = step_of(line); step && *step <= last_step) kept += line + '\n';
  return kept;
}

/// The steps of the first and of the last line of such a text.
std::int64_t first_step_of(const std::string& lines) { return step_of(lines.substr(0, lines.find('\n'))).value_or(0); }
std::int64_t last_step_of(const std::string& lines) {
  return lines.empty() ? 0 : step_of(lines.substr(lines.rfind('\n', lines.size() - 2) + 1)).value_or(0);
}

/// Rewrites the file without its damaged lines.
void drop_damaged(const std::string& path, const Written& written, const std::shared_ptr<FileCalls>& calls) {
  const File former = File::open(path, *calls);
  std::string whole(std::size_t(written.whole), '\0');
  former.read_at(whole.data(), written.whole, 0);
  NewFile file(path, former.mode(), calls);
  file.append(whole.data(), written.whole);
  file.append(written.behind.data(), std::int64_t(written.behind.size()));
  file.publish();
  log_warning(path, ": ", written.damaged, " damaged line(s), the first of them line ", written.first_damaged,
              written.behind.empty() ? ", are left out" : ", are left out; those behind them stay");
}

nlohmann::ordered_json object_of(const StepMetrics& metrics) {
  nlohmann::ordered_json object = {{"version", 1},
                                   {"step", metrics.step},
                                   {"loss", metrics.loss},
                                   {"grad_norm", metrics.grad_norm},
                                   {"lr", metrics.lr},
                                   {"tokens", metrics.tokens},
                                   {"trained_tokens", metrics.trained_tokens},
                                   {"seconds", metrics.seconds},
                                   {"tokens_per_second", metrics.tokens_per_second},
                                   {"peak_bytes", metrics.peak_bytes}};
  const auto add = [&](const char* name, const auto& value) {
    if (value) object[name] = *value;
  };
  add("time", metrics.time);
  add("epoch", metrics.epoch);
  add("host_available_bytes", metrics.host_available_bytes);
  add("host_used_bytes", metrics.host_used_bytes);
  add("load_average", metrics.load_average);
  add("validation_loss", metrics.validation_loss);
  add("skipped", metrics.skipped);
  add("loss_scale", metrics.loss_scale);
  for (const auto& [name, value] : metrics.optimizer) object[name] = value;
  for (const auto& [name, value] : metrics.parts) object[name] = value;
  return object;
}

}  // namespace

bool is_part(const std::string& name) { return name.starts_with("step_") || name.starts_with("slowest_"); }

std::string format_metrics(const StepMetrics& metrics) { return object_of(metrics).dump(); }

std::vector<std::pair<std::string, double>> figures_of(const StepMetrics& metrics) {
  std::vector<std::pair<std::string, double>> figures;
  const nlohmann::ordered_json object = object_of(metrics);
  for (const auto& [name, value] : object.items())
    if (name != "version" && name != "step" && name != "time") figures.emplace_back(name, value.get<double>());
  return figures;
}

StepMetrics parse_metrics(const std::string& line) {
  StepMetrics metrics;
  const std::map<std::string, std::int64_t*> counts{{"step", &metrics.step},
                                                    {"tokens", &metrics.tokens},
                                                    {"trained_tokens", &metrics.trained_tokens},
                                                    {"peak_bytes", &metrics.peak_bytes}};
  const std::map<std::string, double*> numbers{{"loss", &metrics.loss},
                                               {"grad_norm", &metrics.grad_norm},
                                               {"lr", &metrics.lr},
                                               {"seconds", &metrics.seconds},
                                               {"tokens_per_second", &metrics.tokens_per_second}};
  const std::map<std::string, std::optional<std::int64_t>*> optional_counts{
      {"host_available_bytes", &metrics.host_available_bytes},
      {"host_used_bytes", &metrics.host_used_bytes},
      {"skipped", &metrics.skipped}};
  const std::map<std::string, std::optional<double>*> optional_numbers{{"time", &metrics.time},
                                                                       {"epoch", &metrics.epoch},
                                                                       {"load_average", &metrics.load_average},
                                                                       {"validation_loss", &metrics.validation_loss},
                                                                       {"loss_scale", &metrics.loss_scale}};
  try {
    const auto number_of = [](const nlohmann::ordered_json& value) {
      return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
    };
    const auto object = nlohmann::ordered_json::parse(line);
    for (const auto& [name, value] : object.items()) {
      if (name == "version") continue;
      if (const auto count = counts.find(name); count != counts.end())
        *count->second = value.get<std::int64_t>();
      else if (const auto number = numbers.find(name); number != numbers.end())
        *number->second = number_of(value);
      else if (const auto some_count = optional_counts.find(name); some_count != optional_counts.end())
        *some_count->second = value.get<std::int64_t>();
      else if (const auto some_number = optional_numbers.find(name); some_number != optional_numbers.end())
        *some_number->second = number_of(value);
      else
        (is_part(name) ? metrics.parts : metrics.optimizer).emplace_back(name, number_of(value));
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(text("no figures of a step: ", error.what()));
  }
  return metrics;
}

std::int64_t last_recorded_step(const std::string& path, FileCalls& calls) {
  return written_until(path, std::numeric_limits<std::int64_t>::max(), calls).step;
}

MetricsWriter::MetricsWriter(const std::string& path, std::int64_t bytes, std::int64_t last_step, Calls calls)
    : calls_(std::move(calls)), path_(path), file_(calls_->open_to_append(path)), size_(bytes), last_step_(last_step) {
  check_call(file_, path, "opened for writing");
  try {
    FileFacts there;
    answer_of(*calls_, path, "looked at", [&] { return calls_->look(file_, there); });
    if (there.bytes > bytes) check_call(calls_->truncate(file_, bytes), path, text("cut to ", bytes, " bytes"));
  } catch (...) {
    calls_->close(file_);
    throw;
  }
}

MetricsWriter::MetricsWriter(const std::string& path, Calls calls) : MetricsWriter(path, 0, 0, std::move(calls)) {}

MetricsWriter::MetricsWriter(MetricsWriter&& other) noexcept
    : calls_(std::move(other.calls_)),
      path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      size_(other.size_),
      last_step_(other.last_step_),
      uncut_(other.uncut_),
      waiting_(std::move(other.waiting_)),
      torn_(other.torn_),
      lost_(other.lost_),
      failed_(other.failed_) {}

MetricsWriter::~MetricsWriter() {
  if (file_ < 0) return;
  if (!waiting_.empty())
    log_warning(path_, ": its last ", std::count(waiting_.begin(), waiting_.end(), '\n'),
                " line(s) could not be written",
                lost_ ? " and are lost" : "; a checkpoint made after them holds them, and --resume writes them");
  calls_->close(file_);
}

MetricsWriter MetricsWriter::resume(const std::string& path, std::int64_t last_step, const std::string& unwritten,
                                    Calls calls) {
  // Waiting lines are newer than lines of the same steps in the file.
  const std::string waited = lines_until(unwritten, last_step);
  const std::int64_t in_file = waited.empty() ? last_step : std::min(last_step, first_step_of(waited) - 1);
  if (in_file > 0 && facts_of(path, *calls).kind == FileFacts::Kind::absent)
    log_warning(path, ": is not there any more, and begins anew: the lines of steps up to ", in_file, " are gone");
  Written written = written_until(path, in_file, *calls);
  if (written.damaged > 0) {
    drop_damaged(path, written, calls);
    written.end = written.whole + std::int64_t(written.behind.size());
  }
  MetricsWriter writer(path, written.end, written.step, std::move(calls));
  if (waited.empty()) return writer;
  writer.waiting_ = waited;
  writer.last_step_ = last_step_of(waited);
  writer.flush();
  return writer;
}

void MetricsWriter::cut_after(std::int64_t last_step) {
  waiting_ = lines_until(waiting_, last_step);
  last_step_ = std::min(last_step_, last_step);
  uncut_ = std::min(uncut_.value_or(last_step), last_step);
  if (const std::string why = cut(); !why.empty())
    warn_once("cannot be cut back to step " + std::to_string(last_step) + ": " + why);
  if (!waiting_.empty()) last_step_ = last_step_of(waiting_);
}

void MetricsWriter::write(std::int64_t step, const std::string& line) {
  waiting_ += line + '\n';
  last_step_ = step;
  flush();
}

void MetricsWriter::visit_after(std::int64_t step, const std::function<void(const StepMetrics&)>& each) const {
  const auto look = [&](const std::string& line) {
    if (step_of(line).value_or(0) > step) each(parse_metrics(line));
  };
  if (facts_of(path_, *calls_).kind != FileFacts::Kind::absent) for_each_line(File::open(path_, *calls_), look);
  std::istringstream waiting(waiting_);
  for (std::string line; std::getline(waiting, line);) look(line);
}

void MetricsWriter::sync() {
  if (calls_->sync(file_) < 0 && !std::exchange(unsynced_, true))
    log_warning(path_, ": cannot be synced: ", std::strerror(errno), "; a loss of power may cost some of its lines");
  if (has_durable_name_) return;
  has_durable_name_ = calls_->sync_directory(std::filesystem::absolute(path_).parent_path().string()) == 0;
}

// Truncating a file to its own size updates its modification time.
void MetricsWriter::touch() {
  const auto now = std::chrono::steady_clock::now();
  if (now - touched_ < std::chrono::seconds(1)) return;
  touched_ = now;
  calls_->truncate(file_, size_);
}

std::string MetricsWriter::cut() {
  try {
    if (uncut_) {
      const Written written = written_until(path_, *uncut_, *calls_);
      size_ = std::min(size_, written.end);
      if (waiting_.empty()) last_step_ = written.step;
      torn_ = true;
      uncut_.reset();
    }
  } catch (const Error& error) {
    return error.what();
  }
  if (torn_ && calls_->truncate(file_, size_) < 0) return std::strerror(errno);
  torn_ = false;
  return "";
}

void MetricsWriter::flush() {
  std::string why = cut();
  if (why.empty()) {
    const auto bytes = static_cast<std::int64_t>(waiting_.size());
    const Transfer put = write_all(*calls_, file_, waiting_.data(), bytes, size_);
    if (put.moved == bytes) {
      if (failed_) log_info(path_, " can be written again; no line is missing");
      size_ += bytes;
      waiting_.clear();
      failed_ = false;
      return;
    }
    torn_ = true;
    why = std::strerror(put.reason);
    if (!cut().empty()) why += " (its last line is torn until then)";  // the line may be partly written
  }
  warn_once("cannot be written: " + why);
}

void MetricsWriter::warn_once(const std::string& what) {
  if (!std::exchange(failed_, true)) log_warning(path_, ": ", what, "; training goes on, and its lines wait in memory");
}

}  // namespace zero
