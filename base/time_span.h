#pragma once
// Spans of time as people and schedulers write them.
#include <chrono>
#include <optional>
#include <string>

namespace zero {

/// "MM:SS", "HH:MM:SS" or "D-HH:MM:SS", as Slurm has them (sbatch --time); the first number may be of any size up to six
/// digits, those behind it are of two digits, below 60 (hours behind days below 24). None where the text is no such span.
std::optional<std::chrono::seconds> time_span_of(const std::string& text);

}  // namespace zero
