#include "comm/agree.h"

#include <ATen/Functions.h>

#include <cstring>

#include "comm/log.h"

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
  // What each rank tells: failed, code, length and hash of the message.
  const at::Tensor all = at::zeros({4 * group.size()}, at::kLong);
  const at::Tensor mine = all.narrow(0, 4 * group.rank(), 4);
  auto* words = mine.data_ptr<std::int64_t>();
  words[0] = own.failed;
  words[1] = static_cast<std::int64_t>(own.code);
  words[2] = static_cast<std::int64_t>(own.message.size());
  words[3] = static_cast<std::int64_t>(std::hash<std::string>{}(own.message));
  group.all_gather_into(all, mine);
  const auto* told = all.const_data_ptr<std::int64_t>();
  int lowest = -1;
  bool alike = true;
  for (int r = group.size() - 1; r >= 0; --r)
    if (told[4 * r]) lowest = r;
  if (lowest < 0) return;
  for (int r = 0; r < group.size(); ++r) alike &= told[4 * r] && told[4 * r + 3] == told[4 * lowest + 3];
  const at::Tensor message = at::zeros({told[4 * lowest + 2]}, at::kByte);
  if (group.rank() == lowest && !own.message.empty()) std::memcpy(message.data_ptr(), own.message.data(), own.message.size());
  group.broadcast(message, lowest);
  const std::string words_of_lowest(static_cast<const char*>(message.const_data_ptr()), message.numel());
  throw AgreedError(alike ? words_of_lowest : text("rank ", lowest, ": ", words_of_lowest), static_cast<ExitCode>(told[4 * lowest + 1]));
}

}  // namespace zero
