#pragma once
// CallNames: the names that messages use for calls, such as a module's units or a library's functions.
#include <string>
#include <vector>

namespace zero {

/// All ranks must add the same names in the same order. A call's CallTag::unit selects its name.
class CallNames {
 public:
  /// Returns the number of the first name. The others have the numbers that follow.
  int add(const std::vector<std::string>& names) {
    const int first = int(names_.size());
    names_.insert(names_.end(), names.begin(), names.end());
    return first;
  }
  int add(const std::string& name) { return add(std::vector<std::string>{name}); }

  /// Returns null if no name has this number.
  const std::string* find(int number) const {
    return number >= 0 && number < int(names_.size()) ? &names_[std::size_t(number)] : nullptr;
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace zero
