#include "zero/doctor/processor.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "base/byte_count.h"
#include "base/core_share.h"
#include "base/log.h"
#include "base/process/control_group.h"
#include "offload/memory/node_memory.h"

namespace zero {
namespace {

struct Feature {
  const char* name;  // as users know it
  std::vector<const char*> flags;
  bool required;
};

// x86-64-v3, for which programs are compiled (CMakeLists.txt), as Linux names its parts.
const std::vector<Feature> x86_features = {
    {"AVX2", {"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "abm"}, true},
    {"AVX-512", {"avx512f", "avx512bw", "avx512dq", "avx512vl"}, false},
    {"AVX512-BF16", {"avx512_bf16"}, false},
    {"AMX", {"amx_tile", "amx_bf16"}, false},
};
const std::vector<Feature> arm_features = {
    {"NEON", {"asimd"}, true},
    {"CRC-32", {"crc32"}, true},
    {"BF16", {"bf16"}, false},
    {"SVE", {"sve"}, false},
};

/// The value of the first line "KEY<tab>: VALUE"; empty if there is none.
std::string value_of(const std::string& facts, const std::string& key) {
  std::istringstream lines(facts);
  for (std::string line; std::getline(lines, line);)
    if (const std::size_t colon = line.find(": "); line.starts_with(key) && colon != line.npos)
      return line.substr(colon + 2);
  return "";
}

bool has_all(const std::string& flags, const std::vector<const char*>& wanted) {
  const std::string words = " " + flags + " ";
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const char* flag) { return words.find(" " + std::string(flag) + " ") != words.npos; });
}

void append(std::string& list, const char* name) { list += (list.empty() ? "" : ", ") + std::string(name); }

}  // namespace

Finding examine_processor(const std::string& cpuinfo) {
  const std::string x86 = value_of(cpuinfo, "flags"), arm = value_of(cpuinfo, "Features");
  if (x86.empty() && arm.empty())
    return {"processor", Verdict::unknown, "/proc/cpuinfo names no features of the processor",
            "mount /proc; programs need AVX2, or NEON"};
  std::string has, lacks, missing;
  for (const Feature& feature : x86.empty() ? arm_features : x86_features) {
    if (has_all(x86.empty() ? arm : x86, feature.flags)) {
      append(has, feature.name);
    } else {
      append(feature.required ? missing : lacks, feature.name);
    }
  }
  const std::string model = value_of(cpuinfo, "model name");
  std::string words = (model.empty() ? "" : model + ": ") + (has.empty() ? "none" : has);
  if (!lacks.empty()) words += "; without " + lacks;
  if (missing.empty()) return {"processor", Verdict::ok, words, ""};
  return {
      "processor", Verdict::fault, words + "; without " + missing + ", which programs need",
      "use a processor with it (x86-64: Haswell, Zen or newer); a virtual machine must pass its host's features on"};
}

Finding examine_cores(const char* omp_num_threads, const std::string& root) {
  const int cores = int(own_cores().count());
  if (cores == 0)
    return {"cores", Verdict::unknown, "the system does not say on which cores programs may run",
            "set OMP_NUM_THREADS"};
  const double limit = control_group_cores(root);
  std::string words = text(cores, cores == 1 ? " core" : " cores");
  if (limit > 0) words += text(", the control group's limit is the time of ", limit);
  if (omp_num_threads) words += text(", OMP_NUM_THREADS = ", omp_num_threads);
  if (limit > 0 && limit < cores && !omp_num_threads)
    return {"cores", Verdict::warning, words,
            text("start ranks by scripts/train, or export OMP_NUM_THREADS = ", std::max(1, int(std::ceil(limit))),
                 " / ranks: more threads than the limit wait for each other")};
  return {"cores", Verdict::ok, words, ""};
}

Finding examine_memory(const std::string& root) {
  constexpr std::int64_t little = std::int64_t(1) << 30;
  const NodeMemory memory = node_memory(root);
  if (memory.available < 0)
    return {"memory", Verdict::unknown, "the system does not say how much memory is available",
            "mount /proc; zero_train then says before a run whether it fits"};
  const std::string words = text(bytes_text(memory.available), " available, by ", memory.source);
  if (memory.available >= little) return {"memory", Verdict::ok, words, ""};
  return {"memory", Verdict::warning, words, "end other programs, or raise the limit; LibTorch alone takes 0.3 GiB"};
}

}  // namespace zero
