#pragma once
// Agreement: work that all ranks of a group end alike, so that nobody waits for a rank that has given up. Collective:
// every rank of the group calls these in the same order.
#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "comm/communicator.h"
#include "comm/outcome.h"

namespace zero {

/// A failure that all ranks of a group know of and throw alike, and that is no mistake of the user (InputError is).
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// Every rank runs the work, which need not use the group in the same way on all. When it throws anywhere, all ranks
/// throw the same: code and message of the group's cause (comm/outcome.h), as InputError or as AgreedError.
void all_or_none(Communicator& group, const std::function<void()>& work);

/// Rank 0 runs the work while the others wait, however long it takes: it tells them twice a second that it is alive, so
/// that the deadline of collectives does not strike. What it throws is thrown everywhere, without naming the rank. The
/// work runs on a thread of its own, with the caller's number of threads, gradient mode and tracker, and calls no
/// other rank (comm/sole_work.h).
void on_first(Communicator& group, const std::function<void()>& work);

/// Calls `work`, in which all ranks agree; the message of what it throws on all of them alike, none where it succeeds.
/// Any other exception is this rank's own, and passes.
std::optional<std::string> agreed_failure_of(const std::function<void()>& work);

}  // namespace zero
