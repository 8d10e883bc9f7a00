#pragma once
// ProcessFacts: facts about this process and its processor.
#include <chrono>
#include <string>

namespace zero {

/// The time since the process began, to a hundredth of a second. Returns 0 if the system does not say.
std::chrono::duration<double> process_age();

/// For example "AMD EPYC 7763 64-Core Processor". Empty if the system does not say.
std::string processor_name();

}  // namespace zero
