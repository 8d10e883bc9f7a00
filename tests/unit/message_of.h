#pragma once
// What an exception says.
#include <gtest/gtest.h>

#include <string>

namespace zero {

/// The message of the Exception that `body` throws; a test failure and "" when it throws none.
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
