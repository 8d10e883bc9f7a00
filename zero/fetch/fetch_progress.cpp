#include "zero/fetch/fetch_progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/byte_count.h"
#include "base/log.h"
#include "base/log_output.h"

namespace zero {
namespace {

constexpr std::chrono::milliseconds between_frames{200}, between_lines{60'000};

std::string clock_text(double seconds) {
  const long long all = std::llround(seconds);
  char words[32];
  if (all >= 3600)
    std::snprintf(words, sizeof words, "%lld:%02lld:%02lld", all / 3600, all / 60 % 60, all % 60);
  else
    std::snprintf(words, sizeof words, "%lld:%02lld", all / 60, all % 60);
  return words;
}

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

std::string fetch_line(const std::string& path, std::int64_t done, std::int64_t total, double rate, int columns) {
  std::string facts = "  " + bytes_text(done) + " of " + bytes_text(total);
  if (rate >= 1) {
    facts += "  " + bytes_text(static_cast<std::int64_t>(rate)) + "/s";
    facts += "  " + clock_text(double(total - done) / rate) + " left";
  }
  const auto wide = static_cast<std::size_t>(std::max(columns, 0));
  if (wide == 0 || path.size() + facts.size() <= wide) return path + facts;
  const std::size_t kept = wide - std::min(wide, facts.size());
  return path.substr(path.size() - std::min(kept, path.size())) + facts.substr(0, wide);
}

int error_terminal_columns() {
  winsize size{};
  if (!isatty(STDERR_FILENO)) return 0;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

FetchProgress::FetchProgress(std::ostream& out, std::int64_t total, int columns)
    : out_(out), total_(total), columns_(columns) {
  if (columns_ > 0) open_log_lines_with([this] { return make_way(); });
}

FetchProgress::~FetchProgress() {
  if (columns_ > 0) open_log_lines_with(nullptr);
  out_ << make_way() << std::flush;
}

void FetchProgress::begin(const std::string& path, std::int64_t here) {
  path_ = path;
  here_ = here;
  file_begun_ = Clock::now();
  if (here > 0) log_info(path, ": goes on from ", bytes_text(here));
}

void FetchProgress::grown(std::int64_t here) {
  received_ += std::max<std::int64_t>(0, here - here_);
  here_ = here;
  const auto due = columns_ > 0 ? between_frames : between_lines;
  if (Clock::now() - shown_ >= due) show();
}

void FetchProgress::end(std::int64_t bytes) {
  complete_ += bytes;
  here_ = 0;
  shown_ = Clock::now();
  log_info(path_, ": ", bytes_text(bytes), " in ", clock_text(seconds_between(file_begun_, shown_)));
}

void FetchProgress::show() {
  shown_ = Clock::now();
  const double rate = double(received_) / std::max(1e-9, seconds_between(begun_, shown_));
  const std::string line = fetch_line(path_, complete_ + here_, total_, rate, std::max(columns_ - 1, 0));
  if (columns_ == 0) return log_info(line);
  out_ << "\r\033[K" << line << std::flush;
  line_open_ = true;
}

std::string FetchProgress::make_way() { return std::exchange(line_open_, false) ? "\r\033[K" : ""; }

}  // namespace zero
