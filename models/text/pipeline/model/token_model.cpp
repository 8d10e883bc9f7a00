#include "models/text/pipeline/model/token_model.h"

#include "models/text/pipeline/component.h"

namespace zero {

std::unique_ptr<const TokenModel> make_token_model(Component component) {
  // Early files do not name a type.
  const std::string type = component.has("type")     ? component.type()
                           : component.has("merges") ? "BPE"
                                                     : component.get<std::string>("type");
  auto model = type == "BPE" ? make_bpe_model(component) : type == "Unigram" ? make_unigram_model(component) : nullptr;
  if (!model) component.refuse_type("BPE and Unigram");
  component.finish();
  return model;
}

std::string byte_piece(unsigned char byte) {
  constexpr const char* digits = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

}  // namespace zero
