#pragma once
// Parses time spans as people and schedulers write them.
#include <chrono>
#include <optional>
#include <string>

namespace zero {

/// Parses "MM:SS", "HH:MM:SS" or "D-HH:MM:SS", as in Slurm (sbatch --time). The first number has at most six digits.
/// The others have two digits and are below 60. After days, hours are below 24. Returns nothing for any other text.
std::optional<std::chrono::seconds> time_span_of(const std::string& text);

}  // namespace zero
