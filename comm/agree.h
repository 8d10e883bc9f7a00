#pragma once
// Phases whose outcome all ranks share: what fails on one rank fails on all, with one message.
#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "comm/communicator.h"

namespace zero {

/// A failure that all ranks of a group know of and throw alike.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// How a phase ended on one rank.
struct Outcome {
  bool failed = false;
  ExitCode code = ExitCode::ok;
  std::string message;
};

/// Runs the phase and catches what it throws. AgreedError is no different here.
Outcome outcome_of(const std::function<void()>& phase);

/// Every rank of the group runs the phase (which need not use the group in the same way on all), then all learn whether
/// any failed; if so all throw the same AgreedError: code and message of the rank that failed first by its node's
/// clock, named unless all failed alike. Collective.
void agree(Communicator& group, const std::function<void()>& phase);

}  // namespace zero
