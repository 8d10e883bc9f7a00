#include "zero/train/progress.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/log_output.h"

namespace zero {
namespace {

std::string format(const char* pattern, double number) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, pattern,
                std::isnan(number) ? std::fabs(number) : number);  // the sign of a NaN means nothing
  return buffer;
}

// Takes six columns for values up to a billion.
std::string rate_text(double per_second) {
  if (per_second >= 1e6) return format("%5.1fM", per_second / 1e6);
  if (per_second >= 1e4) return format("%5.1fk", per_second / 1e3);
  return per_second >= 100 ? format("%6.0f", per_second) : format("%6.1f", per_second);
}

// Takes five columns, with three significant digits.
std::string norm_text(double norm) {
  if (norm != 0 && (norm < 1e-3 || norm >= 99999)) return format("%5.0e", norm);
  return format(norm < 9.9995 ? "%5.3f" : norm < 99.995 ? "%5.2f" : norm < 999.95 ? "%5.1f" : "%5.0f", norm);
}

std::string bytes_text(double bytes) {
  if (bytes >= 1ll << 30) return format("%.2f GiB", bytes / (1ll << 30));
  return format(bytes < 10 << 20 ? "%.1f MiB" : "%.0f MiB", bytes / (1 << 20));
}

std::string padded(const std::string& words, std::size_t columns) {
  return std::string(columns - std::min(columns, words.size()), ' ') + words;
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

std::string progress_line(const StepMetrics& metrics, std::int64_t total_steps, std::optional<double> seconds_left,
                          int columns) {
  struct Field {
    int order;  // fields with the greatest value are dropped first if the line is too long
    std::string words;
  };
  const std::string total = std::to_string(total_steps);
  std::vector<Field> fields{{0, "step " + padded(std::to_string(metrics.step), total.size()) + "/" + total},
                            {1, "loss " + format("%7.4f", metrics.loss)}};
  const auto accuracy = [&](const char* wanted) -> std::string {
    for (const auto& [name, value] : metrics.optimizer)
      if (name == wanted) return "accuracy " + format("%.0f %%", 100 * value);
    return "";
  };
  if (const std::string words = accuracy("rewards/accuracies"); !words.empty()) fields.push_back({2, words});
  if (metrics.validation_loss) {
    const std::string words = accuracy("validation_rewards/accuracies");
    fields.push_back(
        {2, "validation " + format("%.4f", *metrics.validation_loss) + (words.empty() ? "" : " (" + words + ")")});
  }
  fields.push_back({7, "lr " + format("%.2e", metrics.lr)});
  fields.push_back({6, "norm " + norm_text(metrics.grad_norm)});
  fields.push_back({4, rate_text(metrics.tokens_per_second) + " tok/s"});
  fields.push_back({8, "tensors " + padded(bytes_text(double(metrics.peak_bytes)), 8)});
  if (metrics.skipped && *metrics.skipped > 0) fields.push_back({5, "skipped " + std::to_string(*metrics.skipped)});
  if (seconds_left) fields.push_back({3, padded(clock_text(*seconds_left), 7) + " left"});
  for (;;) {
    std::string line;
    for (const Field& field : fields) line += (line.empty() ? "" : "  ") + field.words;
    if (columns <= 0 || line.size() <= std::size_t(columns) || fields.size() == 1)
      return line.substr(0, columns > 0 ? columns : std::string::npos);
    fields.erase(std::max_element(fields.begin(), fields.end(),
                                  [](const Field& a, const Field& b) { return a.order < b.order; }));
  }
}

std::string closing_lines(const StepMetrics& last, const StepMetrics& sound, std::int64_t process_bytes,
                          const StepMetrics& before) {
  const double seconds = std::max(1e-9, last.seconds - before.seconds);
  const double rate = double(last.tokens - before.tokens) / seconds;
  const std::int64_t steps = std::max<std::int64_t>(1, last.step - before.step);
  std::string words = "trained " + std::to_string(last.step) + (last.step == 1 ? " step in " : " steps in ") +
                      clock_text(last.seconds) +
                      (before.step > 0 ? ", " + std::to_string(steps) + " of them since the last start" : "") + ": " +
                      format("%.3g s a step overall, ", seconds / double(steps)) +
                      format(rate < 100 ? "%.1f tokens/s" : "%.0f tokens/s", rate) + ";";
  if (std::isfinite(last.loss))
    words += format(" loss %.4f", last.loss);
  else
    words += (sound.step > 0 ? format(" loss %.4f in step ", sound.loss) + std::to_string(sound.step) + "," : "") +
             " the last step was passed over";
  if (last.validation_loss) words += format(", validation %.4f", *last.validation_loss);
  if (last.skipped && *last.skipped > 0) words += ", " + std::to_string(*last.skipped) + " of the steps skipped";
  return words + "\nmemory at its peak: tensors " + bytes_text(double(last.peak_bytes)) +
         " on the fullest rank; the whole process of rank 0 " + bytes_text(double(process_bytes));
}

Progress::Progress(std::ostream& out, ProgressOptions options)
    : out_(out),
      options_(options),
      seconds_per_step_(options.before.step > 0 ? options.before.seconds / double(options.before.step) : 0),
      thread_([this](std::stop_token stop) { say_that_it_lives(std::move(stop)); }) {
  if (options_.columns > 0) open_log_lines_with([this] { return make_way(); });
}

Progress::~Progress() {
  if (options_.columns > 0) open_log_lines_with(nullptr);
  finish();
}

void Progress::show(const StepMetrics& metrics) {
  const std::optional<double> left = seconds_left(metrics);
  const bool due = is_due(metrics);
  const std::scoped_lock lock(mutex_);
  last_ = metrics;
  if (std::isfinite(metrics.loss)) sound_ = metrics;
  stepped_ = Clock::now();
  if (!due) return;
  shown_seconds_ = metrics.seconds;
  spoken_ = stepped_;
  if (options_.columns == 0) {
    out_ << progress_line(metrics, options_.total_steps, left) + "\n" << std::flush;
    return;
  }
  // A wrapped line could not be rewritten.
  out_ << "\r\033[K" + progress_line(metrics, options_.total_steps, left, std::max(options_.columns - 1, 1))
       << std::flush;
  line_open_ = true;
  if (metrics.validation_loss) end_line();
}

void Progress::finish() {
  const std::scoped_lock lock(mutex_);
  end_line();
}

void Progress::close(std::int64_t process_bytes) {
  const std::scoped_lock lock(mutex_);
  end_line();
  if (last_.step == 0) return;
  out_ << closing_lines(last_, sound_, process_bytes, options_.before) + "\n" << std::flush;
  spoken_ = Clock::now();
}

void Progress::end_line() {
  if (line_open_) out_ << std::endl;
  line_open_ = false;
}

// Returns the characters that erase the unfinished line. The log writes them to its own stream, because output of two
// streams may reach the terminal in another order. They contain no newline, because scripts forward output line by
// line.
std::string Progress::make_way() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(line_open_, false) ? "\r\x1b[K" : "";
}

void Progress::say_that_it_lives(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const Clock::time_point due = spoken_ + options_.silence;
    over_.wait_until(lock, stop, due, [&] { return spoken_ + options_.silence > due; });
    const Clock::time_point now = Clock::now();
    if (stop.stop_requested() || now < spoken_ + options_.silence) continue;
    end_line();
    const std::string since = clock_text(std::chrono::duration<double>(now - stepped_).count());
    const std::string last = last_.step == 0
                                 ? "the start, no step has ended yet"
                                 : "step " + std::to_string(last_.step) + "/" + std::to_string(options_.total_steps);
    out_ << since + " since " + last + "\n" << std::flush;
    spoken_ = now;
  }
}

bool Progress::is_due(const StepMetrics& metrics) const {
  if (options_.columns > 0 || metrics.step == 1 || metrics.step >= options_.total_steps || metrics.validation_loss)
    return true;
  const double silence = std::chrono::duration<double>(options_.silence).count();
  if (metrics.seconds - shown_seconds_ + seconds_per_step_ > silence) return true;  // the next step would be too late
  const std::int64_t interval =
      options_.interval > 0 ? options_.interval : std::max<std::int64_t>(1, options_.total_steps / 20);
  return metrics.step % interval == 0;
}

std::optional<double> Progress::seconds_left(const StepMetrics& metrics) {
  const StepMetrics& before = options_.before;
  const StepMetrics& former = last_.step > 0 ? last_ : before;
  const std::int64_t steps = metrics.step - former.step;
  // The first step of a start is slow because it touches memory and caches for the first time. Its time is used only
  // until that of the second one is known, and not at all after earlier starts.
  const bool is_slow = before.step > 0 && former.step == before.step;
  // A validation is no part of a step's time, so its step is left out.
  if (steps > 0 && !is_slow && (!metrics.validation_loss || seconds_per_step_ == 0)) {
    const double now = (metrics.seconds - former.seconds) / double(steps);
    const double weight = former.step <= before.step + 1 ? 0 : std::pow(0.9, double(steps));
    seconds_per_step_ = seconds_per_step_ == 0 ? now : weight * seconds_per_step_ + (1 - weight) * now;
  }
  if (metrics.step <= 1 || metrics.step >= options_.total_steps) return std::nullopt;
  return seconds_per_step_ * double(options_.total_steps - metrics.step);
}

}  // namespace zero
