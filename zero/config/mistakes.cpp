#include "zero/config/mistakes.h"

#include <algorithm>

#include "base/error.h"

namespace zero {

bool Mistakes::allow(const std::function<void()>& check) {
  try {
    check();
    return true;
  } catch (const InputError& error) {
    messages_.emplace_back(error.what());
    return false;
  }
}

void Mistakes::tell() const {
  constexpr std::size_t most = 10;
  if (none()) return;
  std::string all;
  for (std::size_t i = 0; i < std::min(most, messages_.size()); ++i) all += (i ? "\n  and: " : "") + messages_[i];
  if (messages_.size() > most) all += "\n  and " + std::to_string(messages_.size() - most) + " more";
  throw InputError(all);
}

}  // namespace zero
