#include "models/text/jinja/library/arguments.h"

#include <algorithm>

#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/values/compare.h"

namespace zero::jinja {

Given::Given(std::string_view function, const Arguments& arguments, std::initializer_list<std::string_view> names,
             std::size_t required)
    : function_(function), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names.size())
    fail(text(function, "() takes at most ", names.size(), " arguments, ", arguments.positional.size(), " are given"));
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto place = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (place == names.size()) fail(text(function, "() got an unexpected keyword argument '", name, "'"));
    if (values_[place]) fail(text(function, "() got multiple values for argument '", name, "'"));
    values_[place] = &value;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (!values_[i]) fail(text(function, "() lacks the argument '", *(names.begin() + i), "'"));
}

bool Given::flag(std::size_t place, bool otherwise) const {
  return values_[place] ? truth(*values_[place]) : otherwise;
}

std::int64_t Given::whole(std::size_t place, std::int64_t otherwise) const {
  if (!values_[place]) return otherwise;
  if (values_[place]->is(Kind::undefined)) fail_undefined(*values_[place]);
  if (!values_[place]->is_whole())
    fail(text(function_, "(): '", type_name(*values_[place]), "' object cannot be interpreted as an integer"));
  return values_[place]->integer();
}

std::string_view Given::string(std::size_t place, std::string_view otherwise) const {
  if (!values_[place]) return otherwise;
  if (values_[place]->is(Kind::undefined)) fail_undefined(*values_[place]);
  if (!values_[place]->is(Kind::string)) fail(text(function_, "() wants a str, not ", type_name(*values_[place])));
  return values_[place]->utf8();
}

void refuse_named(std::string_view function, const Arguments& arguments) {
  if (!arguments.named.empty()) fail(text(function, "() takes no keyword arguments"));
}

}  // namespace zero::jinja
