#pragma once
// Arguments of a function by the names of its parameters. No LibTorch.
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/jinja/library/library.h"

namespace zero::jinja {

class Given {
 public:
  /// Fails for arguments that are unknown, too many, given twice, or missing from the first `required`.
  Given(std::string_view function, const Arguments& arguments, std::initializer_list<std::string_view> names,
        std::size_t required = 0);

  /// nullptr if it was not given.
  const Value* operator[](std::size_t place) const { return values_[place]; }
  Value value(std::size_t place, Value otherwise) const {
    return values_[place] ? *values_[place] : std::move(otherwise);
  }
  bool has(std::size_t place) const { return values_[place] && !values_[place]->is(Kind::none); }
  bool flag(std::size_t place, bool otherwise) const;
  std::int64_t whole(std::size_t place, std::int64_t otherwise) const;
  /// A string. Fails for other values.
  std::string_view string(std::size_t place, std::string_view otherwise) const;

 private:
  std::string function_;
  std::vector<const Value*> values_;
};

/// Fails for keyword arguments.
void refuse_named(std::string_view function, const Arguments& arguments);

}  // namespace zero::jinja
