#pragma once
// N ranks as threads of one process. They run the same code as under mpirun, with seeded schedules, planned faults and
// a log of every call. A mismatch or a deadlock of collectives is reported at once instead of hanging.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace zero {

/// A planned failure at the `call`-th call (from 0, over all communicators) of a rank.
struct SimFault {
  enum class Kind { fail, stall, leave };  // throws an Error; never returns; ends its thread silently
  int rank = 0;
  std::uint64_t call = 0;
  Kind kind = Kind::fail;
};

struct SimOptions {
  int ranks = 1;
  std::uint64_t seed = 0;  // of the random delays before each call; another seed gives another interleaving
  std::vector<SimFault> faults = {};
  std::chrono::milliseconds deadline{60000};  // longest wait for other ranks in one call
  int threads_per_rank = 1;                   // of LibTorch's operators
};

/// One call of a rank and its participants (ranks of the world).
struct SimCall {
  CallRecord call;
  std::vector<int> group;
};

class SimWorld {
 public:
  explicit SimWorld(SimOptions options);
  explicit SimWorld(int ranks) : SimWorld(SimOptions{.ranks = ranks}) {}
  ~SimWorld();

  /// Calls body(communicator, rank) once per rank, each in its own thread, and waits for all. If ranks fail, the others
  /// are woken with an Error, and the first failure is rethrown here. It keeps its class among InputError, Error and
  /// InternalError. Its message gets the rank in front and the position of every rank at the end.
  void run(const std::function<void(Communicator&, int)>& body);

  /// The calls of a rank in the last run, over all its communicators, in order.
  const std::vector<SimCall>& calls(int rank) const;

  struct State;  // shared with the communicators of the ranks

 private:
  std::shared_ptr<State> state_;
};

}  // namespace zero
