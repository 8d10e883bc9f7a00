#pragma once
// Value: the value of an expression, with Python's semantics. Strings, lists, tuples and dicts are immutable.
// Namespaces, loops and generators are not. Containers nest at most max_nesting deep. Does not include LibTorch.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/jinja/budget.h"

namespace zero::jinja {

inline constexpr int max_nesting = 200;

enum class Kind : std::uint8_t {
  missing,  // a variable that has no value yet; never the value of an expression
  undefined,
  none,
  boolean,
  integer,  // 64 bits; larger integers are an error
  real,
  string,
  list,
  tuple,
  range,
  dict,
  view,       // a dict's keys(), values() or items()
  generator,  // can be iterated once
  name_space,
  loop,
  callable,  // functions, methods, macros, cycler, joiner
};

/// A heap object, charged to a budget while it lives.
struct Object {
  explicit Object(Budget* budget) : budget(budget) {}
  Object(const Object&) = delete;
  virtual ~Object() {
    if (budget) budget->give(bytes);
  }
  /// Releases the objects that this one refers to, when the rendering has ended.
  virtual void clear() {}
  void charge(std::size_t more) {
    if (!budget) return;
    budget->take(more);
    bytes += more;
  }

  Budget* budget;  // nullptr for constants of a template
  std::size_t bytes = 0;
  int nesting = 0;  // 1 + the deepest nesting of its contents
};

struct Text;
struct Sequence;
struct Dict;

class Value {
 public:
  Value() = default;  // missing
  Value(Kind kind, std::shared_ptr<Object> object) : kind_(kind), object_(std::move(object)) {}
  static Value none() { return Value(Kind::none, nullptr); }
  static Value undefined() { return Value(Kind::undefined, nullptr); }
  static Value boolean(bool value);
  static Value integer(std::int64_t value);
  static Value real(double value);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_number() const { return kind_ == Kind::integer || kind_ == Kind::real || kind_ == Kind::boolean; }
  bool is_whole() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }
  bool is_sequence() const { return kind_ == Kind::list || kind_ == Kind::tuple || kind_ == Kind::range; }

  bool boolean() const { return scalar_.integer != 0; }
  std::int64_t integer() const { return scalar_.integer; }  // of booleans too
  double real() const { return kind_ == Kind::real ? scalar_.real : static_cast<double>(scalar_.integer); }
  const Text& text() const;
  const std::string& utf8() const;
  const std::vector<Value>& items() const;  // of a sequence
  const Dict& dict() const;
  int nesting() const { return object_ ? object_->nesting : 0; }

  template <class T>
  T& as() const {
    return static_cast<T&>(*object_);
  }
  template <class T>
  T* try_as() const {
    return dynamic_cast<T*>(object_.get());
  }
  const std::shared_ptr<Object>& object() const { return object_; }

 private:
  Kind kind_ = Kind::missing;
  union {
    std::int64_t integer = 0;
    double real;
  } scalar_;
  std::shared_ptr<Object> object_;
};

struct Text : Object {
  using Object::Object;
  std::string utf8;
  std::size_t length = 0;  // code points
  bool markup = false;     // a markupsafe.Markup, whose + escapes the other operand
  bool ascii() const { return length == utf8.size(); }
};

struct Sequence : Object {
  using Object::Object;
  std::vector<Value> items;
  bool group = false;                          // a result of groupby, with .grouper and .list
  std::int64_t start = 0, stop = 0, step = 1;  // range
};

/// Entries are in insertion order. A key that is set again keeps its place.
struct Dict : Object {
  using Object::Object;
  std::vector<std::pair<Value, Value>> entries;
  std::vector<std::uint32_t> buckets;  // from hashes to entry numbers + 1; empty while there are few entries

  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(Value key, Value value);

 private:
  std::size_t place_of(const Value& key, std::uint64_t hash) const;
  void rehash();
};

struct DictView : Object {
  enum class Of : std::uint8_t { keys, values, items };
  DictView(Budget* budget, Value dict, Of of);
  Value dict;
  Of of;
};

/// Returns its items one by one.
struct Generator : Object {
  Generator(Budget* budget, const Value& source);
  virtual std::optional<Value> next() = 0;
};

struct Namespace : Object {
  using Object::Object;
  std::vector<std::pair<std::string, Value>> attributes;
  Value* find(std::string_view name);
  void set(std::string_view name, Value value);
  void clear() override { attributes.clear(); }
};

/// The reason why a value is undefined, for the message when the value is used.
struct Absence : Object {
  using Object::Object;
  std::string message;
  bool unsafe = false;  // the sandbox forbids it
};

/// Updates the holder's nesting. Fails beyond max_nesting.
void nest(Object& holder, const Value& held);

Value make_string(Budget* budget, std::string utf8, bool markup = false);
Value make_list(Budget* budget, std::vector<Value> items);
Value make_tuple(Budget* budget, std::vector<Value> items);
Value make_undefined(Budget* budget, std::string message, bool unsafe = false);

/// Builds a dict, whose keys must be hashable.
class DictBuilder {
 public:
  explicit DictBuilder(Budget* budget) : dict_(std::make_shared<Dict>(budget)) { dict_->charge(sizeof(Dict)); }
  void set(Value key, Value value);
  Value take() { return Value(Kind::dict, std::move(dict_)); }

 private:
  std::shared_ptr<Dict> dict_;
};

/// Number of code points of valid UTF-8.
std::size_t count_characters(std::string_view utf8);

}  // namespace zero::jinja
