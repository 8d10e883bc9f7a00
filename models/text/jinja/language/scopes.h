#pragma once
// Resolves names to variables. jinja2 compiles templates to Python functions and resolves each name before anything
// runs. A name refers to a variable of this function or of an enclosing function, or to a name that the caller passed.
// Names that a loop, a block or a macro sets are not visible outside it. Does not include LibTorch.
#include "models/text/jinja/language/syntax.h"

namespace zero::jinja {

/// Fills in slots and loads. Throws TemplateError of kind `syntax` for break and continue outside a loop, for
/// assignments to `loop` inside a loop, and for unknown filters and tests.
void resolve_names(Syntax& syntax);

}  // namespace zero::jinja
