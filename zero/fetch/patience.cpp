#include "zero/fetch/patience.h"

#include <algorithm>
#include <iomanip>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr const char* remedy = "; run the same command again later, it goes on where this one stopped";

}  // namespace

bool may_pass(const HttpAnswer& answer) {
  if (!answer.trouble.empty()) return !answer.lasting;
  return answer.status == 408 || answer.status == 425 || answer.status == 429 || answer.status >= 500;
}

std::string failure_of(const HttpAnswer& answer) {
  if (!answer.trouble.empty()) return text(answer.host, ": ", answer.trouble);
  const std::string words = answer.error_message.empty() ? "" : " (" + answer.error_message + ")";
  return text(answer.host, " answers with status ", answer.status, words);
}

Patience::Patience(int tries, std::string what, Sleep sleep)
    : tries_(tries), what_(std::move(what)), sleep_(std::move(sleep)) {}

void Patience::wait_after(const HttpAnswer& answer) {
  using std::chrono::milliseconds;
  if (failed_ == tries_)
    throw Error(text(what_, ": ", failure_of(answer), ", after ", failed_ + 1, failed_ ? " tries" : " try", remedy,
                     answer.trouble.empty() ? "" : "; HF_ENDPOINT=URL names another hub"));
  if (answer.wait && *answer.wait > longest_wish)
    throw Error(text(what_, ": ", failure_of(answer), ", and asks to wait for ", answer.wait->count(), " s", remedy));
  const milliseconds doubled = std::min(longest_wait, first_wait * (1 << std::min(failed_, 16)));
  const milliseconds wait = answer.wait ? milliseconds(*answer.wait) : doubled;
  ++failed_;
  log_warning(what_, ": ", failure_of(answer), "; try ", failed_ + 1, " of ", tries_ + 1, " in ", std::fixed,
              std::setprecision(1), double(wait.count()) / 1000, " s");
  sleep_(wait);
}

void Patience::renew() { failed_ = 0; }

}  // namespace zero
