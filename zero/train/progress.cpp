#include "zero/train/progress.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace zero {
namespace {

std::string format(const char* pattern, double number) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, pattern, number);
  return buffer;
}

std::string rate_text(double per_second) {
  if (per_second >= 1e6) return format("%.2fM", per_second / 1e6);
  return per_second >= 1e4 ? format("%.1fk", per_second / 1e3) : format("%.0f", per_second);
}

std::string bytes_text(double bytes) {
  return bytes >= 1ll << 30 ? format("%.2f GiB", bytes / (1ll << 30)) : format("%.0f MiB", bytes / (1 << 20));
}

std::string clock_text(double seconds) {
  const long long s = std::llround(seconds);
  char buffer[64];
  if (s >= 3600)
    std::snprintf(buffer, sizeof buffer, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  else
    std::snprintf(buffer, sizeof buffer, "%lld:%02lld", s / 60, s % 60);
  return buffer;
}

int columns_of(int descriptor) {
  winsize size{};
  if (!isatty(descriptor)) return 0;
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

int terminal_columns() {
  if (!std::getenv("OMPI_COMM_WORLD_RANK")) return columns_of(STDOUT_FILENO);
  const std::string path = "/proc/" + std::to_string(getppid()) + "/fd/1";
  char target[256];
  const ssize_t length = readlink(path.c_str(), target, sizeof target - 1);
  if (length <= 0) return 0;
  target[length] = '\0';
  if (std::string(target).rfind("/dev/", 0) != 0) return 0;  // opening a pipe or a socket could block or write
  const int descriptor = open(target, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return 0;
  const int columns = columns_of(descriptor);
  close(descriptor);
  return columns;
}

std::string progress_line(const StepMetrics& metrics, std::int64_t total_steps, std::optional<double> seconds_left) {
  const std::string total = std::to_string(total_steps), step = std::to_string(metrics.step);
  std::string line = "step " + std::string(total.size() - std::min(total.size(), step.size()), ' ') + step + "/" + total;
  line += "  loss " + format("%.4f", metrics.loss);
  if (metrics.validation_loss) line += "  validation " + format("%.4f", *metrics.validation_loss);
  line += "  lr " + format("%.2e", metrics.lr);
  line += "  norm " + format("%.3g", metrics.grad_norm);
  line += "  " + rate_text(metrics.tokens_per_second) + " tokens/s";
  line += "  peak " + bytes_text(static_cast<double>(metrics.peak_bytes));
  if (metrics.skipped && *metrics.skipped > 0) line += "  skipped " + std::to_string(*metrics.skipped);
  if (seconds_left) line += "  " + clock_text(*seconds_left) + " left";
  return line;
}

void Progress::show(const StepMetrics& metrics) {
  const std::optional<double> left = seconds_left(metrics);
  if (!is_due(metrics)) return;
  std::string line = progress_line(metrics, options_.total_steps, left);
  if (options_.columns == 0) {
    out_ << line << std::endl;
    return;
  }
  line.resize(std::min<std::size_t>(line.size(), std::max(options_.columns - 1, 1)));  // a wrapped line could not be rewritten
  out_ << "\r\033[K" << line << std::flush;
  line_open_ = true;
  if (metrics.validation_loss) finish();
}

void Progress::finish() {
  if (line_open_) out_ << std::endl;
  line_open_ = false;
}

bool Progress::is_due(const StepMetrics& metrics) const {
  if (options_.columns > 0 || metrics.step == 1 || metrics.step >= options_.total_steps || metrics.validation_loss) return true;
  const std::int64_t interval = options_.interval > 0 ? options_.interval : std::max<std::int64_t>(1, options_.total_steps / 20);
  return metrics.step % interval == 0;
}

std::optional<double> Progress::seconds_left(const StepMetrics& metrics) {
  const std::int64_t steps = metrics.step - last_step_;
  if (steps > 0) {
    const double now = (metrics.seconds - last_seconds_) / static_cast<double>(steps);
    const double weight = last_step_ == 0 ? 0 : std::pow(0.9, static_cast<double>(steps));
    // Step 1 pays for first touches of memory and caches; it stands in only until step 2 is known.
    seconds_per_step_ = seconds_per_step_ == 0 || last_step_ <= 1 ? now : weight * seconds_per_step_ + (1 - weight) * now;
  }
  last_step_ = metrics.step;
  last_seconds_ = metrics.seconds;
  if (metrics.step <= 1 || metrics.step >= options_.total_steps) return std::nullopt;
  return seconds_per_step_ * static_cast<double>(options_.total_steps - metrics.step);
}

}  // namespace zero
