#pragma once
// The message of an exception.
#include <gtest/gtest.h>

#include <string>

namespace zero {

/// Returns the message of the Exception that `body` throws. If `body` does not throw one, the test fails and the result
/// is "".
template <class Exception, class Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Exception& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace zero
