#pragma once
// Iteration over whatever Python's iter() takes. No LibTorch.
#include <optional>
#include <vector>

#include "models/text/jinja/values/value.h"

namespace zero::jinja {

class Iterator {
 public:
  /// Fails for what cannot be iterated.
  explicit Iterator(Value source);
  std::optional<Value> next();

 private:
  Value source_;
  std::size_t at_ = 0;  // item, or byte of a string
};

bool is_iterable(const Value& value);

/// len(); nothing for what has none.
std::optional<std::int64_t> length_of(const Value& value);

std::vector<Value> list_of(const Value& value);

}  // namespace zero::jinja
