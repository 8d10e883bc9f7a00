#pragma once
// The trained parts of a rendered conversation, as texts.
#include <string>
#include <vector>

#include "models/text/chat_message.h"

namespace zero {

inline std::vector<std::string> trained_texts(const RenderedChat& rendered) {
  std::vector<std::string> texts;
  for (const TextSpan& span : rendered.trained)
    texts.push_back(rendered.text.substr(span.begin, span.end - span.begin));
  return texts;
}

}  // namespace zero
