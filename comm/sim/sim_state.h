#pragma once
// The state that the threads of a simulated job share. Internal to the sim backend.
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

#include "comm/sim/sim_world.h"

namespace zero {

/// Thrown to unwind the thread of a rank that leaves because of a planned fault.
struct SimLeft {};

struct SimRank {
  std::vector<SimCall> log;
  std::mt19937_64 random;
  bool waiting = false;
  bool gone = false;     // returned, threw or left
  const char* end = "";  // how it ended
};

/// One rank's contribution to a collective.
struct SimOffer {
  CallRecord call;
  const void* in = nullptr;
  const std::vector<std::int64_t>* in_counts = nullptr;  // of an all_to_all
  const std::vector<std::int64_t>* out_counts = nullptr;
  int color = 0;
  int key = 0;
};

/// A message that has been sent but not yet received.
struct SimMessage {
  CallRecord call;
  at::Tensor tensor;
};

struct SimGroup {
  std::vector<int> ranks;  // of the world
  std::vector<SimOffer> offers;
  std::vector<bool> here;
  int arrived = 0;
  std::uint64_t meetings = 0;
  std::map<int, std::shared_ptr<SimGroup>> parts;              // of the current split, by color
  std::map<std::pair<int, int>, std::deque<SimMessage>> mail;  // by (from, to)
};

/// `mutex` guards all members except SimRank::random, which only the rank's own thread uses.
struct SimWorld::State {
  SimOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<SimRank> ranks;
  bool failed = false;
  int first_rank = -1;
  std::exception_ptr first_error;
  std::string first_message;

  /// Keeps the first failure and wakes all threads. The caller holds the mutex.
  void fail(int rank, std::exception_ptr error, const std::string& message);
  /// The position of each rank, on one line each. The caller holds the mutex.
  std::string positions() const;
};

std::unique_ptr<Communicator> make_sim_communicator(std::shared_ptr<SimWorld::State> world,
                                                    std::shared_ptr<SimGroup> group, int rank);

}  // namespace zero
