#pragma once
// Agreement: all ranks of a group end a piece of work alike, so that none waits for a rank that has given up.
// Collective: every rank of the group calls these in the same order.
#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "comm/communicator.h"
#include "comm/outcome.h"

namespace zero {

/// A failure that all ranks of a group throw alike. A mistake of the user is an InputError instead.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// Every rank runs the work, which need not use the group in the same way on all. If it throws anywhere, all ranks
/// throw the same: code and message of the group's cause (comm/outcome.h), as InputError or as AgreedError.
void all_or_none(Communicator& group, const std::function<void()>& work);

/// Rank 0 runs the work while the others wait, however long it takes. It sends them a sign of life twice a second, so
/// the deadline of collectives does not apply. Its exception is thrown on all ranks, without naming the rank. The work
/// runs on a thread of its own, with the caller's number of threads, gradient mode and tracker. It must not make
/// collectives (comm/agreement/rank0_scope.h).
void on_first(Communicator& group, const std::function<void()>& work);

/// Calls `work`, which throws alike on all ranks or on none. Returns the message of that exception, or nothing on
/// success. Any other exception belongs to this rank and propagates.
std::optional<std::string> agreed_failure_of(const std::function<void()>& work);

}  // namespace zero
