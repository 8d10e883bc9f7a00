#pragma once
// Agreement: all ranks of a group succeed together or fail together, so that none waits for a rank that has given up.
// Collective: every rank of the group calls these in the same order.
#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "comm/communicator.h"
#include "comm/outcome.h"

namespace zero {

/// A failure that every rank of a group throws with the same message. A mistake of the user is an InputError instead.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// Every rank runs the work, which may use the group differently on each rank. If it throws on any rank, all ranks
/// throw InputError or AgreedError with the exit code and message that comm/outcome.h selects.
void all_or_none(Communicator& group, const std::function<void()>& work);

/// Rank 0 runs the work while the others wait, however long the work takes. Rank 0 sends them a heartbeat twice a
/// second, so the deadline of collectives does not apply. If the work throws, all ranks throw its exception, and the
/// message does not name rank 0. The work runs on a thread of its own, with the caller's thread count, gradient mode
/// and memory tracker. It must not call collectives (comm/agreement/rank0_scope.h).
void on_first(Communicator& group, const std::function<void()>& work);

/// Calls `work`, which throws the same agreed failure on all ranks, or on none. Returns the failure's message, or
/// nothing on success. Any other exception concerns only this rank and propagates.
std::optional<std::string> agreed_failure_of(const std::function<void()>& work);

}  // namespace zero
