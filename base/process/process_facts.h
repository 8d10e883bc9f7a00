#pragma once
// ProcessFacts: what the system tells of this process and of the processor that it runs on.
#include <chrono>
#include <string>

namespace zero {

/// Since the process began, to a hundredth of a second; 0 where the system does not tell.
std::chrono::duration<double> process_age();

/// "AMD EPYC 7763 64-Core Processor"; empty where the system does not tell.
std::string processor_name();

}  // namespace zero
