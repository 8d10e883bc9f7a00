#include "zero/report/report_file.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/lookup.h"
#include "base/files/new_file.h"
#include "base/log.h"
#include "zero/report/report_page.h"
#include "zero/report/running.h"

namespace zero {
namespace {

constexpr double least_pause = 3, pause_share = 19;  // seconds; for each second of work

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char buffer[64];
  return {buffer, std::strftime(buffer, sizeof buffer, "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

/// Only a report is replaced.
void check_out(const std::string& out) {
  if (!is_there(out)) return;
  if (is_folder(out)) throw InputError(text("--out ", out, ": is a folder: name a file in it"));
  const File file = File::open(out);
  std::string beginning(64, '\0');
  beginning.resize(std::size_t(file.read_up_to(beginning.data(), std::int64_t(beginning.size()), 0)));
  if (!beginning.empty() && !is_report_page(beginning))
    throw InputError(
        text("--out ", out, ": is a file that zero_report has not written, and is not replaced: name another"));
}

/// The runs' folders, each once.
std::vector<std::string> folders_of(const std::vector<std::string>& arguments) {
  std::vector<std::string> folders, places;
  for (const std::string& argument : arguments) {
    const std::string folder = run_folder_of(argument), place = real_path(folder);
    if (std::find(places.begin(), places.end(), place) != places.end()) continue;
    folders.push_back(folder);
    places.push_back(place);
  }
  return folders;
}

std::vector<ReportedRun> read_runs(const std::vector<std::string>& folders) {
  std::vector<ReportedRun> runs;
  for (const std::string& folder : folders) runs.push_back(read_run(folder, page_room(folders.size())));
  name_runs(runs);
  return runs;
}

void publish(const std::string& out, const std::string& page) {
  NewFile file(out);
  file.append(page.data(), std::int64_t(page.size()));
  file.publish();
}

}  // namespace

void write_report(const ReportRequest& request) {
  check_out(request.out);
  const std::string page =
      report_page(read_runs(folders_of(request.runs)), {request.version, time_text(), std::nullopt});
  publish(request.out, page);
  std::cout << request.out << std::endl;
}

void write_live_report(const ReportRequest& request, const std::function<bool()>& stop,
                       const std::function<void(double)>& wait) {
  using Clock = std::chrono::steady_clock;
  check_out(request.out);
  const std::vector<std::string> folders = folders_of(request.runs);
  bool said = false, failed = false;
  for (bool goes_on = true; goes_on;) {
    const auto begin = Clock::now();
    const auto work = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    double pause = least_pause;
    goes_on = !stop();
    try {
      const std::vector<ReportedRun> runs = read_runs(folders);
      goes_on = goes_on && std::any_of(runs.begin(), runs.end(),
                                       [](const ReportedRun& run) { return run.state == RunState::running; });
      pause = std::max(least_pause, pause_share * work());
      publish(request.out, report_page(runs, {request.version, time_text(),
                                              goes_on ? std::optional(int(pause) + 1) : std::nullopt}));
      if (!said) std::cout << request.out << std::endl;  // it can be opened now
      said = true;
      if (failed) log_info(request.out, " can be written again");
      failed = false;
    } catch (const Error& error) {
      if (!said) throw;
      goes_on = goes_on && std::any_of(folders.begin(), folders.end(), is_running);
      if (!goes_on) throw Error(error.what());  // 2 would say that nothing was written
      if (!failed) log_warning(error.what(), "; it is tried again while the run goes on");
      failed = true;
    }
    if (goes_on) wait(std::max(pause, pause_share * work()));
  }
}

}  // namespace zero
