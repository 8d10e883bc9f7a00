#pragma once
// Patience: which failures of a request are transient, how long to wait after one, and when to give up.
#include <chrono>
#include <functional>
#include <string>

#include "zero/fetch/http_client.h"

namespace zero {

/// True for cut connections, stalls, 408, 425, 429 and 5xx.
bool may_pass(const HttpAnswer& answer);

/// "could not be reached: REASON" and the like.
std::string failure_of(const HttpAnswer& answer);

class Patience {
 public:
  using Sleep = std::function<void(std::chrono::milliseconds)>;

  static constexpr std::chrono::milliseconds first_wait{500}, longest_wait{60'000};
  static constexpr std::chrono::seconds longest_wish{300};  // the longest Retry-After that is accepted

  /// `tries`: the most failures in a row for which wait_after() waits. `what`: the request, for messages.
  Patience(int tries, std::string what, Sleep sleep);

  /// Warns, and waits for twice as long as the last time, or as long as the hub asks for. Throws Error, with the
  /// remedy, after more than `tries` failures in a row, or if the hub asks for a wait longer than `longest_wish`.
  void wait_after(const HttpAnswer& answer);
  /// Forgets earlier failures. Call it when a request has made progress.
  void renew();

 private:
  int tries_, failed_ = 0;
  std::string what_;
  Sleep sleep_;
};

}  // namespace zero
