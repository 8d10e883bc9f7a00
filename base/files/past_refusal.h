#pragma once
// past_refusal: runs work that may already have written. InputError (exit code 2) promises that nothing was written, so
// this work must not throw it.
#include "base/error.h"

namespace zero {

/// Does the work and returns its result. Rethrows an InputError as an Error (exit code 1).
template <class Work>
auto past_refusal(const Work& work) {
  try {
    return work();
  } catch (const InputError& error) {
    throw Error(error.what());
  }
}

}  // namespace zero
