#pragma once
// SampleLines: the lines of samples.jsonl, the continuations of prompts at validations. No LibTorch.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

/// A prompt and its continuation, for people. The messages of a conversation are lines "ROLE: CONTENT".
struct Sample {
  std::string prompt, text;
  bool operator==(const Sample&) const = default;
};

/// samples.jsonl in the output directory of a run.
inline std::string samples_path(const std::string& folder) { return folder + "/samples.jsonl"; }

struct SampleLine {
  std::int64_t step = 0;  // from 1
  Sample sample;
};

/// Reads a line without its end; none if it is damaged.
std::optional<SampleLine> sample_of_line(std::string_view line);

/// Calls `each` with the lines of a file as far as it is written, in their order. Leaves out damaged lines. Does
/// nothing if the file is missing. Throws InputError if the file cannot be read.
void for_each_sample(const std::string& path, const std::function<void(SampleLine&&)>& each);

/// The samples of each step.
using SamplesByStep = std::map<std::int64_t, std::vector<Sample>>;

/// The samples of such a file for steps after `step`. Throws InputError if the file cannot be read.
SamplesByStep samples_after(const std::string& path, std::int64_t step);

}  // namespace zero
