#pragma once
// FirstRankWork: what rank 0 does between collectives that all ranks take part in. A failure waits until the end, so that
// the collectives go on and all ranks meet; then it is the same error on all.
#include <exception>

#include "comm/communicator.h"
#include "zero/data/together.h"

namespace zero {

class FirstRankWork {
 public:
  explicit FirstRankWork(Communicator& communicator) : communicator_(communicator) {}

  /// Runs `work` on rank 0, unless earlier work has failed.
  template <class Work>
  void attempt(const Work& work) {
    if (communicator_.rank() != 0 || failure_) return;
    try {
      work();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  /// Throws what failed, on all ranks. Collective.
  void finish() {
    run_together(communicator_, [&] {
      if (failure_) std::rethrow_exception(failure_);
    });
  }

 private:
  Communicator& communicator_;
  std::exception_ptr failure_;
};

}  // namespace zero
