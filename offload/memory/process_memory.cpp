#include "offload/memory/process_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace zero {
namespace {

std::int64_t kib_after(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) return std::stoll(line.substr(key.size())) * 1024;
  return 0;
}

}  // namespace

std::int64_t pss_bytes() { return kib_after("/proc/self/smaps_rollup", "Pss:"); }

std::int64_t peak_resident_bytes() { return kib_after("/proc/self/status", "VmHWM:"); }

void reset_peak_resident_bytes() { std::ofstream("/proc/self/clear_refs") << 5; }

PssSampler::PssSampler(std::chrono::milliseconds interval)
    : thread_([this, interval] {
        while (!over_) {
          peak_ = std::max(peak_.load(), pss_bytes());
          std::this_thread::sleep_for(interval);
        }
      }) {}

PssSampler::~PssSampler() {
  over_ = true;
  thread_.join();
}

}  // namespace zero
