#pragma once
// Given: a function's arguments by parameter name. Does not include LibTorch.
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/jinja/library/library.h"

namespace zero::jinja {

class Given {
 public:
  /// Fails if an argument is unknown or given twice, if there are too many, or if one of the first `required` is
  /// missing.
  Given(std::string_view function, const Arguments& arguments, std::initializer_list<std::string_view> names,
        std::size_t required = 0);

  /// Returns nullptr if the argument was not given.
  const Value* operator[](std::size_t place) const { return values_[place]; }
  Value value(std::size_t place, Value otherwise) const {
    return values_[place] ? *values_[place] : std::move(otherwise);
  }
  bool has(std::size_t place) const { return values_[place] && !values_[place]->is(Kind::none); }
  bool flag(std::size_t place, bool otherwise) const;
  std::int64_t whole(std::size_t place, std::int64_t otherwise) const;
  /// The argument as a string. Fails for any other value.
  std::string_view string(std::size_t place, std::string_view otherwise) const;

 private:
  std::string function_;
  std::vector<const Value*> values_;
};

/// Fails if there are keyword arguments.
void refuse_named(std::string_view function, const Arguments& arguments);

}  // namespace zero::jinja
