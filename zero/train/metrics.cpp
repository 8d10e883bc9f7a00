#include "zero/train/metrics.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "comm/error.h"

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

MetricsWriter::MetricsWriter(const std::string& path, std::ios::openmode mode) : path_(path), file_(path, mode | std::ios::binary) {
  if (!file_) fail(path, "cannot be opened for writing");
}

MetricsWriter::MetricsWriter(const std::string& path) : MetricsWriter(path, std::ios::trunc) {}

MetricsWriter MetricsWriter::resume(const std::string& path, std::int64_t last_step) {
  if (std::filesystem::exists(path)) {
    std::error_code error;
    std::filesystem::resize_file(path, bytes_until(path, last_step), error);
    if (error) throw Error(path + ": cannot be cut to step " + std::to_string(last_step) + ": " + error.message());
  }
  return MetricsWriter(path, std::ios::app);
}

void MetricsWriter::write(const StepMetrics& metrics) {
  file_ << format_metrics(metrics) << '\n' << std::flush;
  if (!file_) fail(path_, "cannot be written");
}

}  // namespace zero
