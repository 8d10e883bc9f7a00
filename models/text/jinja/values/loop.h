#pragma once
// Loop: the variable `loop` in the body of a for statement. It fetches items on demand, as jinja2 does, so a filter
// sees the variables that the body has set. Does not include LibTorch.
#include <functional>
#include <optional>

#include "models/text/jinja/values/iterate.h"
#include "models/text/jinja/values/value.h"

namespace zero::jinja {

struct Loop : Object {
  using Keep = std::function<bool(const Value&)>;  // the for statement's `if`

  Loop(Budget* budget, const Value& source, Keep keep, std::int64_t depth0);
  void clear() override;

  /// Moves to the next item and returns it. Returns nothing at the end.
  std::optional<Value> advance();

  std::int64_t length();
  Value attribute(std::string_view name);  // index, last, previtem, ...; a missing value for other names
  bool changed(const std::vector<Value>& now);

  std::int64_t index0 = -1;
  std::int64_t depth0;
  std::function<Value(const Value&)> recurse;  // of a recursive loop

 private:
  std::optional<Value> fetch();
  const std::optional<Value>& peek();

  std::optional<Iterator> iterator_;
  Keep keep_;
  std::optional<std::int64_t> length_;
  bool peeked_ = false;
  std::optional<Value> after_;
  Value current_, before_;
  std::vector<Value> rest_;  // items that were fetched to compute the length
  std::size_t rest_at_ = 0;
  std::optional<std::vector<Value>> last_changed_;
};

}  // namespace zero::jinja
