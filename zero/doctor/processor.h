#pragma once
// Examines the processor, its cores and its memory.
#include <string>

#include "zero/doctor/finding.h"

namespace zero {

/// The instructions that kernels use and those that they cannot use, from the text of /proc/cpuinfo. Both architectures
/// are recognised by their own key ("flags", "Features").
Finding examine_processor(const std::string& cpuinfo);

/// Cores by affinity, the limit of the control group, and OMP_NUM_THREADS (`omp_num_threads`; null if unset).
/// `root` is a prefix of /proc and /sys, for tests.
Finding examine_cores(const char* omp_num_threads, const std::string& root = "");

/// The memory that processes can still take, and the limit on it.
Finding examine_memory(const std::string& root = "");

}  // namespace zero
