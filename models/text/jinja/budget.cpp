#include "models/text/jinja/budget.h"

#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/values/value.h"

namespace zero::jinja {
namespace {

[[noreturn]] void stop(const std::string& message) { throw TemplateError(TemplateError::Kind::bound, message); }

}  // namespace

Budget::~Budget() {
  for (const auto& object : kept_) object->clear();
}

void Budget::stop_operations() const {
  stop(text("takes more than ", limits_.operations, " operations: does it end at all?"));
}

void Budget::stop_memory(std::size_t bytes) {
  memory_ -= bytes;
  stop(text("its values take more than ", limits_.memory, " bytes of memory"));
}

void Budget::stop_output() const { stop(text("writes more than ", limits_.output, " bytes")); }

void Budget::stop_depth() const {
  stop(text("expressions and calls go deeper into one another than ", limits_.depth,
            " levels: does a macro call itself without end?"));
}

}  // namespace zero::jinja
