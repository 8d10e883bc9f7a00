#pragma once
// past_refusal: work that begins to write. A refusal (InputError, exit code 2) promises that nothing was written.
#include "base/error.h"

namespace zero {

/// Does the work and returns its result. A refusal that it throws becomes a failure: Error, exit code 1.
template <class Work>
auto past_refusal(const Work& work) {
  try {
    return work();
  } catch (const InputError& error) {
    throw Error(error.what());
  }
}

}  // namespace zero
