#include "models/text/jinja/values/loop.h"

#include <algorithm>

#include "models/text/jinja/values/compare.h"

namespace zero::jinja {

Loop::Loop(Budget* budget, const Value& source, Keep keep, std::int64_t depth0)
    : Object(budget), depth0(depth0), iterator_(source), keep_(std::move(keep)) {
  charge(sizeof(Loop));
  nest(*this, source);
  if (!keep_) length_ = length_of(source);
}

void Loop::clear() {
  recurse = nullptr;
  keep_ = nullptr;
  iterator_.reset();
  after_.reset();
  current_ = before_ = Value();
  rest_.clear();
  last_changed_.reset();
}

std::optional<Value> Loop::fetch() {
  if (rest_at_ < rest_.size()) return rest_[rest_at_++];
  if (!iterator_) return std::nullopt;
  while (auto next = iterator_->next())
    if (!keep_ || keep_(*next)) return next;
  iterator_.reset();
  return std::nullopt;
}

const std::optional<Value>& Loop::peek() {
  if (!peeked_) {
    after_ = fetch();
    peeked_ = true;
  }
  return after_;
}

std::optional<Value> Loop::advance() {
  std::optional<Value> next = peek();
  peeked_ = false;
  after_.reset();
  if (!next) return next;
  ++index0;
  before_ = current_;
  current_ = *next;
  return next;
}

std::int64_t Loop::length() {
  if (length_) return *length_;
  std::vector<Value> rest;
  while (auto next = fetch()) rest.push_back(*std::move(next));
  rest_ = std::move(rest);
  rest_at_ = 0;
  length_ = static_cast<std::int64_t>(rest_.size()) + index0 + 1 + (peeked_ && after_ ? 1 : 0);
  return *length_;
}

Value Loop::attribute(std::string_view name) {
  if (name == "index0") return Value::integer(index0);
  if (name == "index") return Value::integer(index0 + 1);
  if (name == "first") return Value::boolean(index0 == 0);
  if (name == "last") return Value::boolean(!peek());
  if (name == "length") return Value::integer(length());
  if (name == "revindex") return Value::integer(length() - index0);
  if (name == "revindex0") return Value::integer(length() - index0 - 1);
  if (name == "depth") return Value::integer(depth0 + 1);
  if (name == "depth0") return Value::integer(depth0);
  if (name == "previtem") return index0 == 0 ? make_undefined(budget, "there is no previous item") : before_;
  if (name == "nextitem") return peek() ? *peek() : make_undefined(budget, "there is no next item");
  return Value();
}

bool Loop::changed(const std::vector<Value>& now) {
  const bool same = last_changed_ && last_changed_->size() == now.size() &&
                    std::equal(now.begin(), now.end(), last_changed_->begin(), equal);
  last_changed_ = now;
  return !same;
}

}  // namespace zero::jinja
