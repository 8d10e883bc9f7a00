#include "zero/train/records/event_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/lookup.h"
#include "base/files/make_folder.h"
#include "base/files/transfer.h"
#include "base/log.h"
#include "zero/output/record_names.h"
#include "zero/train/records/event_record.h"
#include "zero/train/records/figure_tags.h"

namespace zero {
namespace {

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 && *name ? name : "host";
}

/// Calls `each` with the events of a file up to a torn or damaged one.
template <class Each>
void for_each_event(const File& file, const Each& each) {
  constexpr std::int64_t block = 1 << 20, longest = 256 << 20;  // no record is as long
  std::string held;
  for (std::int64_t begin = 0; begin < file.size() && std::int64_t(held.size()) < longest; begin += block) {
    const std::size_t kept = held.size();
    held.resize(kept + std::size_t(std::min(block, file.size() - begin)));
    held.resize(kept + std::size_t(file.read_up_to(held.data() + kept, std::int64_t(held.size() - kept), begin)));
    std::string_view rest = held;
    while (const auto event = take_record(rest)) each(*event);
    held = std::string(rest);
  }
}

/// Markdown that shows a text as it is: a block of code.
std::string verbatim(const std::string& text) {
  std::string block = "    ";
  for (const char c : text) {
    block += c;
    if (c == '\n') block += "    ";
  }
  return block;
}

/// A row for each sample, below the names of the columns.
TextTable text_table_of(const std::vector<Sample>& samples) {
  TextTable table{"samples", 2, {}};
  if (!samples.empty()) table.cells = {"**prompt**", "**continuation**"};
  for (const Sample& sample : samples)
    table.cells.insert(table.cells.end(), {verbatim(sample.prompt), verbatim(sample.text)});
  return table;
}

}  // namespace

EventFiles::EventFiles(std::string folder, std::shared_ptr<FileCalls> calls)
    : folder_(std::move(folder)), calls_(std::move(calls)) {
  make_folder(*calls_, folder_);
  read_earlier();
}

EventFiles::~EventFiles() {
  if (!waiting_.empty())
    log_warning(folder_, ": the last ", waiting_.size(),
                " step(s) could not be written for TensorBoard; metrics.jsonl holds them, and --resume adds them");
  close();
}

void EventFiles::read_earlier() {
  for (const std::string& name : names_in(folder_, *calls_)) {
    const auto time = event_file_time(name);
    if (!time) continue;
    newest_ = std::max(newest_, *time);
    repeats_ = true;
    for_each_event(File::open(folder_ + "/" + name, *calls_), [&](const EventHead& event) {
      last_step_ = event.begins_session ? std::min(last_step_, event.step - 1) : std::max(last_step_, event.step);
    });
  }
}

void EventFiles::begin_after(std::int64_t last_step) {
  close();
  std::erase_if(waiting_, [&](const auto& record) { return record.first > last_step; });
  last_step_ = waiting_.empty() ? last_step : waiting_.back().first;
  const std::int64_t begin = waiting_.empty() ? last_step + 1 : waiting_.front().first;
  opening_ = version_record(unix_time()) + (repeats_ ? session_record(unix_time(), begin) : "");
  repeats_ = true;
  newest_ = std::max(newest_ + 1, std::int64_t(unix_time()));
  path_ = folder_ + "/" + event_file_name(newest_, host_name());
  flush();
}

void EventFiles::write(const StepMetrics& metrics, const std::vector<Sample>& samples) {
  waiting_.emplace_back(metrics.step, summary_record(metrics.time.value_or(unix_time()), metrics.step,
                                                     tagged_figures(metrics), text_table_of(samples)));
  last_step_ = metrics.step;
  flush();
}

std::string EventFiles::open() {
  if (file_ < 0) {
    file_ = calls_->create(path_, 0644, /*direct=*/false);
    if (file_ < 0) return std::strerror(errno);
    size_ = 0;
  }
  if (torn_ && calls_->truncate(file_, size_) < 0) return std::strerror(errno);
  torn_ = false;
  return "";
}

void EventFiles::close() {
  if (file_ >= 0) calls_->close(std::exchange(file_, -1));
  torn_ = false;
}

void EventFiles::flush() {
  std::string why = open();
  if (why.empty()) {
    std::string bytes = opening_;
    for (const auto& [step, record] : waiting_) bytes += record;
    const auto count = std::int64_t(bytes.size());
    const Transfer put = write_all(*calls_, file_, bytes.data(), count, size_);
    if (put.moved == count) {
      if (std::exchange(failed_, false)) log_info(path_, " can be written again; no step is missing");
      size_ += count;
      opening_.clear();
      waiting_.clear();
      return;
    }
    torn_ = true;
    why = std::strerror(put.reason);
    if (!open().empty()) why += " (its last record is torn until then)";
  }
  if (!std::exchange(failed_, true))
    log_warning(path_, ": cannot be written: ", why, "; training goes on, and its steps wait in memory");
}

}  // namespace zero
