#pragma once
// CallNames: names of calls in messages: units of a module, functions of a library.
#include <string>
#include <vector>

namespace zero {

/// Ranks add the same names in the same order. CallTag::unit of a call selects the name.
class CallNames {
 public:
  /// Returns the number of the first of these names. The others follow.
  int add(const std::vector<std::string>& names) {
    const int first = int(names_.size());
    names_.insert(names_.end(), names.begin(), names.end());
    return first;
  }
  int add(const std::string& name) { return add(std::vector<std::string>{name}); }

  /// Null if nothing has this number.
  const std::string* find(int number) const {
    return number >= 0 && number < int(names_.size()) ? &names_[std::size_t(number)] : nullptr;
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace zero
