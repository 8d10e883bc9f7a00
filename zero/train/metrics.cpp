#include "zero/train/metrics.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "base/error.h"
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

struct Written {
  std::int64_t bytes = 0;  // at the beginning
  std::int64_t step = 0;   // of the last object in them
};

/// Whole objects of steps up to `last_step`.
Written written_until(std::istream& lines, std::int64_t last_step) {
  Written written;
  for (std::string line; std::getline(lines, line) && !lines.eof(); written.bytes += std::int64_t(line.size()) + 1) {
    const std::optional<std::int64_t> step = step_of(line);
    if (!step || *step > last_step) break;
    written.step = *step;
  }
  return written;
}

Written written_until(const std::string& path, std::int64_t last_step) {
  std::ifstream file(path, std::ios::binary);
  return written_until(file, last_step);
}

}  // namespace

std::string format_metrics(const StepMetrics& metrics) {
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
  if (metrics.validation_loss) object["validation_loss"] = *metrics.validation_loss;
  if (metrics.skipped) object["skipped"] = *metrics.skipped;
  if (metrics.loss_scale) object["loss_scale"] = *metrics.loss_scale;
  for (const auto& [name, value] : metrics.optimizer) object[name] = value;
  return object.dump();
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
      else if (name == "validation_loss")
        metrics.validation_loss = number_of(value);
      else if (name == "skipped")
        metrics.skipped = value.get<std::int64_t>();
      else if (name == "loss_scale")
        metrics.loss_scale = number_of(value);
      else
        metrics.optimizer.emplace_back(name, number_of(value));
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(text("no figures of a step: ", error.what()));
  }
  return metrics;
}

MetricsWriter::MetricsWriter(const std::string& path, std::int64_t bytes, std::int64_t last_step,
                             std::shared_ptr<FileCalls> calls)
    : calls_(std::move(calls)), path_(path), file_(calls_->open_to_append(path)), size_(bytes), last_step_(last_step) {
  check_call(file_, path, "opened for writing");
  try {
    const std::int64_t there = calls_->size(file_);
    check_call(there, path, "looked at");
    if (there > bytes) check_call(calls_->truncate(file_, bytes), path, text("cut to ", bytes, " bytes"));
  } catch (...) {
    calls_->close(file_);
    throw;
  }
}

MetricsWriter::MetricsWriter(const std::string& path, std::shared_ptr<FileCalls> calls)
    : MetricsWriter(path, 0, 0, std::move(calls)) {}

MetricsWriter::MetricsWriter(MetricsWriter&& other) noexcept
    : calls_(std::move(other.calls_)),
      path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      size_(other.size_),
      last_step_(other.last_step_),
      waiting_(std::move(other.waiting_)),
      failed_(other.failed_) {}

MetricsWriter::~MetricsWriter() {
  if (file_ < 0) return;
  if (!waiting_.empty())
    log_warning(path_, ": its last ", std::count(waiting_.begin(), waiting_.end(), '\n'),
                " line(s) could not be written; a checkpoint made after them holds them, and --resume writes them");
  calls_->close(file_);
}

MetricsWriter MetricsWriter::resume(const std::string& path, std::int64_t last_step, const std::string& unwritten) {
  const Written written = written_until(path, last_step);
  MetricsWriter writer(path, written.bytes, written.step, std::make_shared<FileCalls>());
  std::istringstream lines(unwritten);
  for (std::string line; std::getline(lines, line);)
    if (const auto step = step_of(line); step && *step > written.step && *step <= last_step) {
      writer.waiting_ += line + '\n';
      writer.last_step_ = *step;
    }
  if (!writer.waiting_.empty()) writer.flush();
  return writer;
}

// What waits is younger than what the file has.
void MetricsWriter::cut_after(std::int64_t last_step) {
  std::istringstream waiting(waiting_);
  const Written waits = written_until(waiting, last_step), written = written_until(path_, last_step);
  waiting_.resize(std::size_t(waits.bytes));
  last_step_ = std::max(waits.step, written.step);
  const std::int64_t bytes = std::min(size_, written.bytes);
  if (calls_->truncate(file_, bytes) == 0)
    size_ = bytes;
  else
    log_warning(path_, ": cannot be cut to ", bytes, " bytes: ", std::strerror(errno),
                "; lines of steps that are taken again stay in it");
}

void MetricsWriter::write(const StepMetrics& metrics) {
  waiting_ += format_metrics(metrics) + '\n';
  last_step_ = metrics.step;
  flush();
}

// A file that is cut to the size that it has gets another time.
void MetricsWriter::touch() {
  const auto now = std::chrono::steady_clock::now();
  if (now - touched_ < std::chrono::seconds(1)) return;
  touched_ = now;
  calls_->truncate(file_, size_);
}

void MetricsWriter::flush() {
  const auto bytes = static_cast<std::int64_t>(waiting_.size());
  const Transfer put = write_all(*calls_, file_, waiting_.data(), bytes, size_);
  if (put.moved == bytes) {
    if (failed_) log_info(path_, " can be written again; no line is missing");
    size_ += bytes;
    waiting_.clear();
    failed_ = false;
    return;
  }
  const bool cut = calls_->truncate(file_, size_) == 0;  // nothing is left of a line that went in by half
  if (!failed_)
    log_warning(path_, ": cannot be written: ", std::strerror(put.reason),
                "; training goes on, and its lines wait in memory", cut ? "" : " (the last line in it is torn)");
  failed_ = true;
}

}  // namespace zero
