#include "zero/data/preview.h"

#include <algorithm>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "models/text/tokenizer.h"

namespace zero {
namespace {

// Escapes bytes that would break the table, as in C.
std::string printable(const std::string& chunk) {
  std::string result;
  for (const char c : chunk) {
    if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20)
      result += ' ';
    else
      result += c;
  }
  return result;
}

}  // namespace

std::string preview_text(const EncodedExample& example, const Tokenizer& tokenizer) {
  std::ostringstream out;
  const auto trained = std::count(example.trained.begin(), example.trained.end(), 1);
  out << example.place << ": " << example.ids.size() << " tokens, " << trained << " trained (*)"
      << (example.note.empty() ? "" : "; ") << example.note << "\n";
  for (std::size_t i = 0; i < example.ids.size(); ++i)
    out << (example.trained[i] ? " * " : "   ") << std::setw(6) << example.ids[i] << "  "
        << printable(tokenizer.piece(example.ids[i])) << "\n";
  return out.str();
}

std::string preview_json(const EncodedExample& example) {
  nlohmann::ordered_json line{{"text", example.text}, {"ids", example.ids}, {"trained", example.trained}};
  if (!example.note.empty()) line["note"] = example.note;
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace zero
