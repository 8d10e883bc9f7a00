#include "comm/outcome.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/refusals.h"

namespace zero {

Outcome outcome_of(const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const Error& e) {
    return {true, e.code(), e.what(), false};
  } catch (const InternalError& e) {
    return {true, ExitCode::failure, text("internal error: ", e.what()), false};
  } catch (const c10::Error& e) {
    const std::string message = e.what_without_backtrace();
    const bool refused = message.find(no_raw_pointer) != std::string::npos;
    return {true, refused ? ExitCode::bad_input : ExitCode::failure, message, !refused};
  } catch (const std::exception& e) {
    return {true, ExitCode::failure, e.what(), true};
  } catch (...) {
    return {true, ExitCode::failure, "an exception of unknown type", true};
  }
}

OutcomeRecord OutcomeRecord::of(const Outcome& outcome) {
  return {outcome.failed, static_cast<std::int64_t>(outcome.code), static_cast<std::int64_t>(outcome.message.size()),
          static_cast<std::int64_t>(std::hash<std::string>{}(outcome.message)),
          std::chrono::system_clock::now().time_since_epoch().count()};
}

std::string FailureCause::describe(const std::string& message) const {
  return names_rank ? text("rank ", rank, ": ", message) : message;
}

std::optional<FailureCause> cause_of(std::span<const OutcomeRecord> records) {
  const auto first = std::min_element(records.begin(), records.end(), [](const auto& a, const auto& b) {
    return std::pair(!a.failed, a.time) < std::pair(!b.failed, b.time);
  });
  if (first == records.end() || !first->failed) return std::nullopt;
  const auto rank = static_cast<int>(first - records.begin());
  const auto code = static_cast<ExitCode>(first->code);
  const bool alike = std::all_of(records.begin(), records.end(), [&](const OutcomeRecord& record) {
    return record.failed && record.message_hash == first->message_hash;
  });
  const bool refused_by_rank_0 = rank == 0 && code == ExitCode::bad_input;
  return FailureCause{rank, code, first->message_bytes, !alike && !refused_by_rank_0};
}

}  // namespace zero
