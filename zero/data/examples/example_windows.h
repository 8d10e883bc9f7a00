#pragma once
// Examples beyond seq_len: what is trained of them, and the account of what is not. No LibTorch.
#include <cstdint>
#include <string>
#include <vector>

#include "zero/data/examples/conversation_encoder.h"

namespace zero {

/// What becomes of an example with more than seq_len + 1 tokens. truncate: a text is cut into windows, of a
/// conversation or completion the start is kept. drop: it is left out.
enum class Overlong : std::uint8_t { truncate, drop };

/// "truncate" or "drop"; InputError otherwise.
Overlong overlong_of(const std::string& name);

/// What happened to examples. Tokens are those that would have been trained.
struct ExampleCounts {
  std::int64_t examples = 0;
  std::int64_t cut = 0;  // texts that became several windows
  std::int64_t truncated = 0;
  std::int64_t dropped_overlong = 0;
  std::int64_t dropped_untrained = 0;  // nothing to train in what was left
  std::int64_t lost_tokens = 0;        // behind the end of truncated ones, and in those dropped as too long
  std::int64_t unended = 0;            // conversations whose last trained answer ends with no special token

  ExampleCounts& operator+=(const ExampleCounts& other);
};

/// What is trained of an example: nothing, itself, its start, or windows of seq_len + 1 tokens that overlap by one, so
/// that every token of a text but its first is the target of one window. Each has at least one trained token. The text
/// stays with the first.
std::vector<EncodedExample> trained_windows(EncodedExample example, std::int64_t seq_len, Overlong overlong,
                                            ExampleCounts& counts);

/// For people, what was lost and how to keep it, and which answers have no end; empty where there is nothing to tell.
std::string warning_of(const ExampleCounts& counts, std::int64_t seq_len);

/// What to do where no example has anything left to train, by what happened to them.
std::string remedy_of(const ExampleCounts& counts);

/// What becomes of one example of `tokens` tokens, by the counts of it alone: that it is left out, and why, or where it
/// ends; empty when all of it is trained.
std::string note_of(const ExampleCounts& one, std::size_t tokens, std::int64_t seq_len);

}  // namespace zero
