#pragma once
// Outcome: how the work of one rank ended, and how the failure that all ranks report is selected.
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
  bool is_foreign = false;  // thrown by LibTorch or the program, not by this project
};

/// Runs the work and catches its exception.
Outcome outcome_of(const std::function<void()>& work);

/// An outcome as numbers, which ranks exchange in one collective. The message itself is sent only on request.
struct OutcomeRecord {
  std::int64_t failed, code;
  std::int64_t message_bytes, message_hash;
  std::int64_t time;  // when the work ended, on the node's clock

  static constexpr std::size_t numbers = 5;
  /// The record of work that ends now.
  static OutcomeRecord of(const Outcome& outcome);
};
static_assert(sizeof(OutcomeRecord) == OutcomeRecord::numbers * sizeof(std::int64_t));

/// The failure that a group reports. It is the earliest one, since later failures are usually timeouts that the first
/// one caused. Messages name the rank, unless all ranks failed identically or rank 0 rejected user input on behalf of
/// all.
struct FailureCause {
  int rank = 0;
  ExitCode code = ExitCode::failure;
  std::int64_t message_bytes = 0;
  bool names_rank = false;

  /// "rank 2: no such file"
  std::string describe(const std::string& message) const;
};

/// Selects the cause from the records of all ranks, in rank order. Returns nothing if no rank failed.
std::optional<FailureCause> cause_of(std::span<const OutcomeRecord> records);

}  // namespace zero
