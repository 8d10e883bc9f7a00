#include "base/process/process_facts.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <sstream>

namespace zero {

// The start time is field 22, in ticks since boot. Field 2, a name, may contain any characters.
std::chrono::duration<double> process_age() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  const long ticks = ::sysconf(_SC_CLK_TCK);
  timespec now{};
  if (!fields || ticks <= 0 || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return {};
  const double begin = std::strtod(field.c_str(), nullptr) / double(ticks);
  return std::chrono::duration<double>(std::max(0.0, double(now.tv_sec) + 1e-9 * double(now.tv_nsec) - begin));
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const std::size_t colon = line.find(": "); colon != line.npos) return line.substr(colon + 2);
  return "";
}

}  // namespace zero
