#pragma once
// Outcome: how the work of one rank ended, and by which rule the ranks of a group find the failure that ends them all.
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"

namespace zero {

struct Outcome {
  bool failed = false;
  ExitCode code = ExitCode::ok;
  std::string message;
  bool is_foreign = false;  // LibTorch or the program threw it, not this project
};

/// Runs the work and catches what it throws.
Outcome outcome_of(const std::function<void()>& work);

/// What the other ranks are told of an outcome, in one collective of numbers. The message follows when it is wanted.
struct OutcomeRecord {
  std::int64_t failed, code;
  std::int64_t message_bytes, message_hash;
  std::int64_t time;  // when the work ended, by the node's clock

  static constexpr std::size_t numbers = 5;
  /// Of work that ends now.
  static OutcomeRecord of(const Outcome& outcome);
};
static_assert(sizeof(OutcomeRecord) == OutcomeRecord::numbers * sizeof(std::int64_t));

/// The failure of a group. It is that of the rank that failed first: others may have failed for want of it, at the end
/// of their patience. People are told the rank, unless all failed alike, or rank 0 refused what the user gave: it looks
/// for all.
struct FailureCause {
  int rank = 0;
  ExitCode code = ExitCode::failure;
  std::int64_t message_bytes = 0;
  bool names_rank = false;

  /// "rank 2: no such file"
  std::string describe(const std::string& message) const;
};

/// From the records of all ranks, by rank; none: no rank failed.
std::optional<FailureCause> cause_of(std::span<const OutcomeRecord> records);

}  // namespace zero
