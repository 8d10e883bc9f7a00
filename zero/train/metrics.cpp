#include "zero/train/metrics.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/files/transfer.h"
#include "base/log.h"

namespace zero {
namespace {

// Bytes at the beginning that hold whole objects of steps up to `last_step`.
std::int64_t bytes_until(std::istream& lines, std::int64_t last_step) {
  std::int64_t bytes = 0;
  for (std::string line; std::getline(lines, line) && !lines.eof(); bytes += std::int64_t(line.size()) + 1) {
    const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object() || !object.contains("step") || !object["step"].is_number_integer()) break;
    if (object["step"].get<std::int64_t>() > last_step) break;
  }
  return bytes;
}

std::int64_t bytes_until(const std::string& path, std::int64_t last_step) {
  std::ifstream file(path, std::ios::binary);
  return bytes_until(file, last_step);
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

MetricsWriter::MetricsWriter(const std::string& path, std::int64_t bytes, std::shared_ptr<FileCalls> calls)
    : calls_(std::move(calls)), path_(path), file_(calls_->open_to_append(path)), size_(bytes) {
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
    : MetricsWriter(path, 0, std::move(calls)) {}

MetricsWriter::MetricsWriter(MetricsWriter&& other) noexcept
    : calls_(std::move(other.calls_)),
      path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      size_(other.size_),
      waiting_(std::move(other.waiting_)),
      failed_(other.failed_) {}

MetricsWriter::~MetricsWriter() {
  if (file_ < 0) return;
  if (!waiting_.empty())
    log_warning(path_, ": its last ", std::count(waiting_.begin(), waiting_.end(), '\n'),
                " line(s) could not be written");
  calls_->close(file_);
}

MetricsWriter MetricsWriter::resume(const std::string& path, std::int64_t last_step) {
  return {path, bytes_until(path, last_step), std::make_shared<FileCalls>()};
}

// What waits is younger than what the file has.
void MetricsWriter::cut_after(std::int64_t last_step) {
  std::istringstream waiting(waiting_);
  waiting_.resize(std::size_t(bytes_until(waiting, last_step)));
  const std::int64_t bytes = std::min(size_, bytes_until(path_, last_step));
  if (calls_->truncate(file_, bytes) == 0)
    size_ = bytes;
  else
    log_warning(path_, ": cannot be cut to ", bytes, " bytes: ", std::strerror(errno),
                "; lines of steps that are taken again stay in it");
}

void MetricsWriter::write(const StepMetrics& metrics) {
  waiting_ += format_metrics(metrics) + '\n';
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
