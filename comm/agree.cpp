#include "comm/agree.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/log.h"

namespace zero {

Outcome outcome_of(const std::function<void()>& phase) {
  try {
    phase();
    return {};
  } catch (const Error& e) {
    return {true, e.code(), e.what()};
  } catch (const InternalError& e) {
    return {true, ExitCode::failure, text("internal error: ", e.what())};
  } catch (const c10::Error& e) {
    return {true, ExitCode::failure, e.what_without_backtrace()};
  } catch (const std::exception& e) {
    return {true, ExitCode::failure, e.what()};
  } catch (...) {
    return {true, ExitCode::failure, "an exception of unknown type"};
  }
}

void agree(Communicator& group, const std::function<void()>& phase) {
  const Outcome own = outcome_of(phase);
  const std::int64_t now = std::chrono::system_clock::now().time_since_epoch().count();
  struct Told {
    std::int64_t failed, code, length, hash, time;
  };  // by each rank
  constexpr std::int64_t width = sizeof(Told) / sizeof(std::int64_t);
  const at::Tensor all = at::zeros({width * group.size()}, at::kLong);
  const at::Tensor mine = all.narrow(0, width * group.rank(), width);
  *reinterpret_cast<Told*>(mine.data_ptr()) = {own.failed, static_cast<std::int64_t>(own.code),
                                               static_cast<std::int64_t>(own.message.size()),
                                               static_cast<std::int64_t>(std::hash<std::string>{}(own.message)), now};
  group.all_gather_into(all, mine);
  const auto* told = reinterpret_cast<const Told*>(all.const_data_ptr());
  // The rank that failed first has the cause: others may have failed for want of it, at the end of their patience.
  const Told* first = nullptr;
  for (int r = 0; r < group.size(); ++r)
    if (told[r].failed && (!first || told[r].time < first->time)) first = told + r;
  if (!first) return;
  const int cause = static_cast<int>(first - told);
  const bool alike =
      std::all_of(told, told + group.size(), [&](const Told& t) { return t.failed && t.hash == first->hash; });
  const at::Tensor message = at::zeros({first->length}, at::kByte);
  if (group.rank() == cause && !own.message.empty())
    std::memcpy(message.data_ptr(), own.message.data(), own.message.size());
  group.broadcast(message, cause);
  const std::string words(static_cast<const char*>(message.const_data_ptr()), message.numel());
  throw AgreedError(alike ? words : text("rank ", cause, ": ", words), static_cast<ExitCode>(first->code));
}

}  // namespace zero
