#pragma once
// Iteration over everything that Python's iter() accepts. Does not include LibTorch.
#include <optional>
#include <vector>

#include "models/text/jinja/values/value.h"

namespace zero::jinja {

class Iterator {
 public:
  /// Fails for a value that is not iterable.
  explicit Iterator(Value source);
  std::optional<Value> next();

 private:
  Value source_;
  std::size_t at_ = 0;  // item, or byte of a string
};

bool is_iterable(const Value& value);

/// len(). Returns nothing for a value without a length.
std::optional<std::int64_t> length_of(const Value& value);

std::vector<Value> list_of(const Value& value);

}  // namespace zero::jinja
