#include "models/text/tokenizer_model.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "models/text/character_map.h"

namespace zero {
namespace {

constexpr std::size_t max_piece_bytes = 4096;
constexpr std::uint64_t user_defined_type = 4;

/// Walks the fields of one protobuf message.
class MessageReader {
 public:
  MessageReader(std::string_view content, const std::string& path) : rest_(content), path_(path) {}

  /// Steps to the next field; false at the end. Then its number is set.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint();
    number = static_cast<int>(tag >> 3 & 0x1FFFFFFF);
    wire_ = static_cast<int>(tag & 7);
    switch (wire_) {
      case 0:
        value_ = varint();
        break;
      case 1:
        bytes_ = take(8);
        break;
      case 2:
        bytes_ = take(varint());
        break;
      case 5:
        bytes_ = take(4);
        break;
      default:
        refuse("an unknown wire type");
    }
    if (number == 0) refuse("field number 0");
    return true;
  }

  /// The field's value. A value of the wrong kind throws: SentencePiece would ignore it and keep an earlier value.
  std::uint64_t value() const { return expect(0), value_; }
  std::string_view bytes() const { return expect(2), bytes_; }
  float real() const {
    expect(5);
    float result = 0;
    std::memcpy(&result, bytes_.data(), sizeof result);
    return result;
  }

  int number = 0;

 private:
  [[noreturn]] void refuse(const char* what) const {
    throw InputError(text(path_, ": is no tokenizer.model of SentencePiece: ", what));
  }
  void expect(int wire) const {
    if (wire_ != wire) refuse("a field of the wrong kind");
  }
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
  int wire_ = 0;
  std::uint64_t value_ = 0;
  std::string_view bytes_;
};

/// One piece: its text, score and type.
void read_piece(std::string_view content, std::int32_t id, TokenizerModelInfo& info, const std::string& path) {
  std::string_view piece;
  bool user_defined = false;
  for (MessageReader field(content, path); field.next();) {
    if (field.number == 1) piece = field.bytes();
    if (field.number == 2 && !std::isfinite(field.real()))
      throw InputError(text(path, ": the score of piece ", id, " is no finite number"));
    if (field.number == 3) user_defined = field.value() == user_defined_type;
  }
  if (piece.empty() || piece.size() > max_piece_bytes)
    throw InputError(text(path, ": piece ", id, " has ", piece.size(), " bytes; 1 to ", max_piece_bytes, " are read"));
  require_utf8(piece, text(path, ": piece ", id));
  if (user_defined) info.user_defined.push_back(id);
}

std::string_view checked_map(std::string_view map, const std::string& path) {
  if (const char* fault = fault_of_character_map(map))
    throw InputError(text(path, ": the normaliser's character map ", fault, "; is the file damaged?"));
  return map;
}

}  // namespace

TokenizerModelInfo parse_tokenizer_model(std::string_view content, const std::string& path) {
  TokenizerModelInfo info;
  std::int32_t pieces = 0;
  for (MessageReader model(content, path); model.next();) {
    if (model.number == 1) read_piece(model.bytes(), pieces++, info, path);
    if (model.number == 2)
      for (MessageReader trainer(model.bytes(), path); trainer.next();) {
        if (trainer.number == 3) info.model_type = static_cast<int>(trainer.value());
        if (trainer.number == 24) info.whitespace_as_suffix = trainer.value() != 0;
      }
    if (model.number == 3)
      for (MessageReader normalizer(model.bytes(), path); normalizer.next();) {
        if (normalizer.number == 2) info.character_map = checked_map(normalizer.bytes(), path);
        if (normalizer.number == 3) info.add_dummy_prefix = normalizer.value() != 0;
        if (normalizer.number == 4) info.remove_extra_whitespaces = normalizer.value() != 0;
        if (normalizer.number == 5) info.escape_whitespaces = normalizer.value() != 0;
      }
    if (model.number == 5)
      for (MessageReader denormalizer(model.bytes(), path); denormalizer.next();)
        if (denormalizer.number == 2) checked_map(denormalizer.bytes(), path);
  }
  if (pieces == 0) throw InputError(text(path, ": is no tokenizer.model of SentencePiece: it has no pieces"));
  return info;
}

const char* TokenizerModelInfo::beside_merges() const {
  if (model_type != 2) return model_type == 1 ? "is a unigram model" : "is no BPE model";
  if (!character_map.empty()) return "has a normaliser that rewrites characters (such as nmt_nfkc)";
  if (remove_extra_whitespaces) return "has a normaliser that removes extra white space";
  if (!escape_whitespaces || whitespace_as_suffix) return "writes spaces in another way than before a word";
  return nullptr;
}

std::string without_dummy_prefix(std::string content) {
  // If a message occurs twice, the two are merged and the last value of a field wins: normalizer_spec {
  // add_dummy_prefix: false }
  return content.append("\x1A\x02\x18\x00", 4);
}

}  // namespace zero
