#pragma once
// Work on input files that all ranks must agree about: a failure on one is the same error on all, so that nobody waits
// for a rank that has given up. Collective: every rank of the communicator calls these in the same order.
#include <functional>

namespace zero {

class Communicator;

/// Runs `work` on every rank. When it throws anywhere, every rank throws the error of the lowest rank that failed.
void run_together(Communicator& comm, const std::function<void()>& work);

/// Tells the ranks that wait that work goes on, so that the deadline of collectives does not strike. Cheap to call often.
using Heartbeat = std::function<void()>;

/// Runs `work` on rank 0 while the others wait; its error is thrown everywhere.
void run_on_first(Communicator& comm, const std::function<void(const Heartbeat&)>& work);

}  // namespace zero
