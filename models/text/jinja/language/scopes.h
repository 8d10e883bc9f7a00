#pragma once
// Which variable each name means. jinja2 compiles templates to functions of Python and settles there, before anything
// runs, what a name is: a variable of this function, one of a function around it, or a name that the caller gave. What a
// loop, a block or a macro sets stays inside. No LibTorch.
#include "models/text/jinja/language/syntax.h"

namespace zero::jinja {

/// Fills in slots and loads. TemplateError of kind syntax for break and continue outside of loops, for assignments to
/// `loop` inside of one, and for filters and tests that do not exist.
void resolve_names(Syntax& syntax);

}  // namespace zero::jinja
