// zero_report: the records of runs as one HTML file with a table and curves. Needs neither LibTorch nor MPI.
#include <CLI/CLI.hpp>

#include <csignal>
#include <ctime>

#include "base/error.h"
#include "base/log.h"
#include "cmake/version.h"
#include "zero/programs/command_line.h"
#include "zero/programs/written_output.h"
#include "zero/report/report_file.h"

namespace zero {
namespace {

/// Holds back the signals that end a live report, so that they are asked for instead of ending the process.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    sigprocmask(SIG_BLOCK, &signals_, nullptr);
  }
  bool came() {
    wait(0);
    return came_;
  }
  /// Waits so long for one.
  void wait(double seconds) {
    const auto whole = static_cast<std::time_t>(seconds);
    const timespec time{whole, static_cast<long>((seconds - double(whole)) * 1e9)};
    came_ = came_ || sigtimedwait(&signals_, nullptr, &time) > 0;
  }

 private:
  sigset_t signals_{};
  bool came_ = false;
};

int run(int argc, char** argv) {
  ReportRequest request;
  request.out = "report.html";
  request.version = version();
  bool live = false;
  CLI::App app(
      "Writes one HTML file about runs: a table of their figures and of what differs between their configurations, and "
      "curves of all that they log. It needs no network and no other file.",
      "zero_report");
  app.add_option("runs", request.runs, "output directories of runs, or their metrics.jsonl")->required();
  app.add_option("--out", request.out, "the file; only a report is replaced")->capture_default_str();
  app.add_flag("--live", live,
               "write it again every few seconds while a run goes on. The page loads itself again. Ends with the last "
               "run, or at Ctrl-C");
  if (const auto code = parse_command_line(app, argc, argv, "zero_report " + version())) return *code;
  require_folder_for("--out", request.out);
  if (live) {
    EndSignals signals;
    write_live_report(
        request, [&] { return signals.came(); }, [&](double seconds) { signals.wait(seconds); });
  } else {
    write_report(request);
  }
  require_written_output();
  return 0;
}

}  // namespace
}  // namespace zero

int main(int argc, char** argv) {
  zero::start_log(0, 1);
  try {
    return zero::run(argc, argv);
  } catch (const zero::Error& error) {
    zero::log_error(error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    zero::log_error(error.what());
    return static_cast<int>(zero::ExitCode::failure);
  }
}
