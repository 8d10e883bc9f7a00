#pragma once
// Resolves names to variables. jinja2 compiles templates to Python functions and resolves each name before anything
// runs. A name is a variable of this function, one of an enclosing function, or a name that the caller gave. Names that
// a loop, a block or a macro sets stay inside. No LibTorch.
#include "models/text/jinja/language/syntax.h"

namespace zero::jinja {

/// Fills in slots and loads. Throws TemplateError of kind syntax for break and continue outside of loops, for
/// assignments to `loop` inside of one, and for unknown filters and tests.
void resolve_names(Syntax& syntax);

}  // namespace zero::jinja
