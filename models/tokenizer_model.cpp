#include "models/tokenizer_model.h"

#include <cstring>

#include "comm/error.h"
#include "comm/log.h"

namespace zero {
namespace {

/// Walks the fields of one protobuf message.
class MessageReader {
 public:
  MessageReader(std::string_view content, const std::string& path) : rest_(content), path_(path) {}

  /// Steps to the next field; false at the end. Then number and either value (varint) or bytes are set.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint();
    number = static_cast<int>(tag >> 3 & 0x1FFFFFFF);
    bytes = {};
    value = 0;
    switch (tag & 7) {
      case 0: value = varint(); break;
      case 1: take(8); break;
      case 2: bytes = take(varint()); break;
      case 5: take(4); break;
      default: refuse("an unknown wire type");
    }
    if (number == 0) refuse("field number 0");
    return true;
  }

  int number = 0;
  std::uint64_t value = 0;
  std::string_view bytes;

 private:
  [[noreturn]] void refuse(const char* what) const { throw InputError(text(path_, ": is no tokenizer.model of SentencePiece: ", what)); }
  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) refuse("a field goes beyond the end; was the file cut short?");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::uint64_t varint() {
    std::uint64_t result = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      result |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (!(byte & 0x80)) return result;
    }
    refuse("a number longer than 64 bits");
  }

  std::string_view rest_;
  const std::string& path_;
};

}  // namespace

TokenizerModelInfo parse_tokenizer_model(std::string_view content, const std::string& path) {
  TokenizerModelInfo info;
  bool pieces = false;
  for (MessageReader model(content, path); model.next();) {
    if (model.number == 1) pieces = true;
    if (model.number == 2)
      for (MessageReader trainer(model.bytes, path); trainer.next();) {
        if (trainer.number == 3) info.model_type = static_cast<int>(trainer.value);
        if (trainer.number == 24) info.whitespace_as_suffix = trainer.value != 0;
      }
    if (model.number == 3)
      for (MessageReader normalizer(model.bytes, path); normalizer.next();) {
        if (normalizer.number == 2) info.character_map = normalizer.bytes;
        if (normalizer.number == 3) info.add_dummy_prefix = normalizer.value != 0;
        if (normalizer.number == 4) info.remove_extra_whitespaces = normalizer.value != 0;
        if (normalizer.number == 5) info.escape_whitespaces = normalizer.value != 0;
      }
  }
  if (!pieces) throw InputError(text(path, ": is no tokenizer.model of SentencePiece: it has no pieces"));
  return info;
}

std::string without_dummy_prefix(std::string content) {
  // A message that stands twice is merged, the last value of a field wins: normalizer_spec { add_dummy_prefix: false }
  return content.append("\x1A\x02\x18\x00", 4);
}

}  // namespace zero
