#pragma once
// SimWorld: N ranks as threads of one process. They run the same code as under mpirun, with seeded random delays,
// planned faults and a log of every call. A mismatch or a deadlock of collectives is reported at once instead of
// hanging.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace zero {

/// A planned failure at a rank's call number `call`, counted from 0 over all its communicators.
struct SimFault {
  enum class Kind { fail, stall, leave };  // throws an Error; never returns; ends its thread silently
  int rank = 0;
  std::uint64_t call = 0;
  Kind kind = Kind::fail;
};

struct SimOptions {
  int ranks = 1;
  std::uint64_t seed = 0;  // of the random delays before each call; each seed gives another interleaving
  std::vector<SimFault> faults = {};
  std::chrono::milliseconds deadline{60000};  // longest wait for other ranks in one call
  int threads_per_rank = 1;                   // of LibTorch's operators
};

/// One call of a rank, and the ranks that take part.
struct SimCall {
  CallRecord call;
  std::vector<int> group;
};

class SimWorld {
 public:
  explicit SimWorld(SimOptions options);
  explicit SimWorld(int ranks) : SimWorld(SimOptions{.ranks = ranks}) {}
  ~SimWorld();

  /// Calls body(communicator, rank) once per rank, each in its own thread, and waits for all. If a rank fails, the
  /// other ranks are woken with an Error. run() rethrows the first failure as the same class: InputError, Error or
  /// InternalError. Its message then begins with the rank and ends with the position of every rank.
  void run(const std::function<void(Communicator&, int)>& body);

  /// A rank's calls during the last run, in order, over all its communicators.
  const std::vector<SimCall>& calls(int rank) const;

  struct State;  // shared with the communicators of the ranks

 private:
  std::shared_ptr<State> state_;
};

}  // namespace zero
