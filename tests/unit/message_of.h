#pragma once
// The message of an exception.
#include <gtest/gtest.h>

#include <string>

namespace zero {

/// The message of the Exception that `body` throws. If it throws none: a test failure and "".
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
