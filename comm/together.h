#pragma once
// Work on input files that all ranks must agree about: a failure on one is the same error on all, so that nobody waits
// for a rank that has given up. Collective: every rank of the communicator calls these in the same order.
#include <cstdint>
#include <functional>
#include <string>

namespace zero {

class Communicator;

/// Runs `work` on every rank. When it throws anywhere, every rank throws the error of the lowest rank that failed:
/// InputError for a mistake of the user, else AgreedError (comm/agree.h).
void run_together(Communicator& comm, const std::function<void()>& work);

/// Runs `work` on rank 0 while the others wait, however long it takes: rank 0 tells them twice a second that it is
/// alive, so that the deadline of collectives does not strike. Its error is thrown everywhere. The work runs on a
/// thread of its own, with the caller's number of threads, gradient mode and ledger, and must not use the communicator.
void run_on_first(Communicator& comm, const std::function<void()>& work);

/// The text or the number that `root` passes, on all ranks.
std::string told_by(Communicator& comm, int root, const std::string& mine);
std::int64_t told_by(Communicator& comm, int root, std::int64_t mine);

}  // namespace zero
