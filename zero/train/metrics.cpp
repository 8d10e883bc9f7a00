#include "zero/train/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw Error(path + ": " + what + ": " + std::strerror(errno));
}

// Bytes at the file's start that hold whole objects of steps up to `last_step`.
std::uintmax_t bytes_until(const std::string& path, std::int64_t last_step) {
  std::ifstream file(path, std::ios::binary);
  std::uintmax_t bytes = 0;
  for (std::string line; std::getline(file, line) && !file.eof(); bytes += line.size() + 1) {
    const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object() || !object.contains("step") || !object["step"].is_number_integer()) break;
    if (object["step"].get<std::int64_t>() > last_step) break;
  }
  return bytes;
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
  return object.dump();
}

MetricsWriter::MetricsWriter(const std::string& path, int flags)
    : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0644)) {
  if (file_ < 0) fail(path, "cannot be opened for writing");
  size_ = ::lseek(file_, 0, SEEK_END);
}

MetricsWriter::MetricsWriter(const std::string& path) : MetricsWriter(path, O_TRUNC) {}

MetricsWriter::MetricsWriter(MetricsWriter&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      size_(other.size_),
      waiting_(std::move(other.waiting_)),
      failed_(other.failed_) {}

MetricsWriter::~MetricsWriter() {
  if (file_ < 0) return;
  if (!waiting_.empty())
    log_warning(path_, ": its last ", std::count(waiting_.begin(), waiting_.end(), '\n'),
                " line(s) could not be written");
  ::close(file_);
}

MetricsWriter MetricsWriter::resume(const std::string& path, std::int64_t last_step) {
  if (std::filesystem::exists(path)) {
    std::error_code error;
    std::filesystem::resize_file(path, bytes_until(path, last_step), error);
    if (error) throw Error(path + ": cannot be cut to step " + std::to_string(last_step) + ": " + error.message());
  }
  return MetricsWriter(path, 0);
}

void MetricsWriter::write(const StepMetrics& metrics) {
  waiting_ += format_metrics(metrics) + '\n';
  std::size_t done = 0;
  while (done < waiting_.size()) {
    const ssize_t put = ::write(file_, waiting_.data() + done, waiting_.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) break;
    done += std::size_t(put);
  }
  if (done == waiting_.size()) {
    if (failed_) log_info(path_, " can be written again; no line is missing");
    size_ += std::int64_t(done);
    waiting_.clear();
    failed_ = false;
    return;
  }
  const char* reason = std::strerror(errno);
  const bool cut = ::ftruncate(file_, size_) == 0;  // nothing is left of a line that went in by half
  if (!failed_)
    log_warning(path_, ": cannot be written: ", reason, "; training goes on, and its lines wait in memory",
                cut ? "" : " (the last line in it is torn)");
  failed_ = true;
}

}  // namespace zero
