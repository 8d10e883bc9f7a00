#include "models/text/pipeline/metaspace.h"

#include "models/text/pipeline/component.h"

namespace zero {

Metaspace read_metaspace(Component& component) {
  Metaspace form;
  form.replacement = component.character("replacement");
  form.split = component.get<bool>("split", true);
  component.pass_over("str_rep");
  const bool older = component.get<bool>("add_prefix_space", true);
  const auto scheme = component.get<std::string>("prepend_scheme", older ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    component.refuse("prepend_scheme", "must be always, first or never");
  if (!older && scheme != "never") component.refuse("add_prefix_space", "contradicts prepend_scheme");
  form.scheme = scheme == "always"  ? PrependScheme::always
                : scheme == "first" ? PrependScheme::first
                                    : PrependScheme::never;
  return form;
}

}  // namespace zero
