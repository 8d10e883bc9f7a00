#include "models/text/jinja/values/value.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/log.h"
#include "base/utf8.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/values/compare.h"

namespace zero::jinja {
namespace {

constexpr std::size_t few = 8;  // entries of a dict that are looked through one by one

Value make_sequence(Budget* budget, Kind kind, std::vector<Value> items) {
  auto sequence = std::make_shared<Sequence>(budget);
  sequence->charge(sizeof(Sequence) + items.size() * sizeof(Value));
  if (budget) budget->step(static_cast<std::int64_t>(items.size() / 8));
  for (const Value& item : items) nest(*sequence, item);
  sequence->items = std::move(items);
  return Value(kind, std::move(sequence));
}

}  // namespace

Value Value::boolean(bool value) {
  Value result(Kind::boolean, nullptr);
  result.scalar_.integer = value;
  return result;
}

Value Value::integer(std::int64_t value) {
  Value result(Kind::integer, nullptr);
  result.scalar_.integer = value;
  return result;
}

Value Value::real(double value) {
  Value result(Kind::real, nullptr);
  result.scalar_.real = value;
  return result;
}

const Text& Value::text() const { return as<Text>(); }
const std::string& Value::utf8() const { return as<Text>().utf8; }
const std::vector<Value>& Value::items() const { return as<Sequence>().items; }
const Dict& Value::dict() const { return as<Dict>(); }

std::size_t count_characters(std::string_view utf8) {
  std::size_t count = 0;
  for (; utf8.size() >= 8; utf8.remove_prefix(8)) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, utf8.data(), 8);
    const std::uint64_t continuing = (bytes >> 7) & ~(bytes >> 6) & 0x0101010101010101u;  // 10xxxxxx
    count += 8 - static_cast<std::size_t>(std::popcount(continuing));
  }
  for (const char c : utf8) count += !utf8_continues(c);
  return count;
}

void nest(Object& holder, const Value& held) {
  holder.nesting = std::max(holder.nesting, held.nesting() + 1);
  if (holder.nesting > max_nesting)
    throw TemplateError(TemplateError::Kind::bound, text("values are nested deeper than ", max_nesting, " levels"));
}

Value make_string(Budget* budget, std::string utf8, bool markup) {
  auto made = std::make_shared<Text>(budget);
  made->charge(sizeof(Text) + utf8.size());
  if (budget) budget->step(static_cast<std::int64_t>(utf8.size() / 64));
  made->length = count_characters(utf8);
  made->utf8 = std::move(utf8);
  made->markup = markup;
  return Value(Kind::string, std::move(made));
}

Value make_list(Budget* budget, std::vector<Value> items) {
  return make_sequence(budget, Kind::list, std::move(items));
}

Value make_tuple(Budget* budget, std::vector<Value> items) {
  return make_sequence(budget, Kind::tuple, std::move(items));
}

Value make_undefined(Budget* budget, std::string message, bool unsafe) {
  auto absence = std::make_shared<Absence>(budget);
  absence->charge(sizeof(Absence) + message.size());
  absence->message = std::move(message);
  absence->unsafe = unsafe;
  return Value(Kind::undefined, std::move(absence));
}

DictView::DictView(Budget* budget, Value dict, Of of) : Object(budget), dict(std::move(dict)), of(of) {
  charge(sizeof(DictView));
  nest(*this, this->dict);
}

Generator::Generator(Budget* budget, const Value& source) : Object(budget) {
  charge(sizeof(Generator) + 64);
  nest(*this, source);
}

void DictBuilder::set(Value key, Value value) {
  dict_->charge(2 * sizeof(Value) + 8);
  if (dict_->budget) dict_->budget->step();
  nest(*dict_, key);
  nest(*dict_, value);
  dict_->set(std::move(key), std::move(value));
}

// The entry with this key, or the number of entries.
std::size_t Dict::place_of(const Value& key, std::uint64_t hash) const {
  if (buckets.empty()) {
    std::size_t place = 0;
    while (place < entries.size() && !equal(entries[place].first, key)) ++place;
    return place;
  }
  for (std::size_t at = hash & (buckets.size() - 1);; at = (at + 1) & (buckets.size() - 1)) {
    if (buckets[at] == 0) return entries.size();
    if (equal(entries[buckets[at] - 1].first, key)) return buckets[at] - 1;
  }
}

void Dict::rehash() {
  buckets.assign(std::max<std::size_t>(4 * few, 4 * entries.size()), 0);
  while ((buckets.size() & (buckets.size() - 1)) != 0)
    buckets.resize(buckets.size() + (buckets.size() & -buckets.size()));
  for (std::size_t place = 0; place < entries.size(); ++place) {
    std::size_t at = hash_of(entries[place].first) & (buckets.size() - 1);
    while (buckets[at] != 0) at = (at + 1) & (buckets.size() - 1);
    buckets[at] = static_cast<std::uint32_t>(place + 1);
  }
}

void Dict::set(Value key, Value value) {
  const std::uint64_t hash = hash_of(key);
  if (const std::size_t place = place_of(key, hash); place < entries.size()) {
    entries[place].second = std::move(value);
    return;
  }
  entries.emplace_back(std::move(key), std::move(value));
  if (entries.size() <= few) return;
  if (buckets.size() < 2 * entries.size()) return rehash();
  std::size_t at = hash & (buckets.size() - 1);
  while (buckets[at] != 0) at = (at + 1) & (buckets.size() - 1);
  buckets[at] = static_cast<std::uint32_t>(entries.size());
}

const Value* Dict::find(const Value& key) const {
  const std::size_t place = place_of(key, hash_of(key));
  return place < entries.size() ? &entries[place].second : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  if (!buckets.empty()) return find(make_string(nullptr, std::string(key)));
  for (const auto& [name, value] : entries)
    if (name.is(Kind::string) && name.utf8() == key) return &value;
  return nullptr;
}

Value* Namespace::find(std::string_view name) {
  for (auto& [key, value] : attributes)
    if (key == name) return &value;
  return nullptr;
}

void Namespace::set(std::string_view name, Value value) {
  if (Value* found = find(name)) {
    *found = std::move(value);
    return;
  }
  charge(sizeof(Value) + sizeof(std::string) + name.size());
  if (budget) budget->step(static_cast<std::int64_t>(attributes.size()));
  attributes.emplace_back(name, std::move(value));
}

}  // namespace zero::jinja
