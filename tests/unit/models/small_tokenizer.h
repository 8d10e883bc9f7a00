#pragma once
// A tokenizer.model with 300 pieces, written byte by byte: <unk>, <s>, </s>, the 256 bytes, letters and a few merges.
#include <cstring>
#include <string>
#include <vector>

namespace zero::test {

/// Returns the content of the file (SentencePiece's ModelProto): byte-pair encoding, identity normaliser, a leading
/// space.
inline std::string small_tokenizer_model() {
  std::string model;
  const auto field = [](std::string& to, int number, const std::string& content) {
    to += static_cast<char>(number << 3 | 2);
    for (std::size_t size = content.size();; size >>= 7) {
      to += static_cast<char>((size & 0x7F) | (size > 0x7F ? 0x80 : 0));
      if (size <= 0x7F) break;
    }
    to += content;
  };
  float score = 0;
  const auto piece = [&](const std::string& content, char type) {
    std::string message, number(4, '\0');
    std::memcpy(number.data(), &score, 4);
    field(message, 1, content);
    message += '\x15' + number + '\x18' + type;
    field(model, 1, message);
    score -= 1;
  };
  piece("<unk>", 2);
  piece("<s>", 3);
  piece("</s>", 3);
  constexpr const char* digit = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) piece(std::string("<0x") + digit[byte / 16] + digit[byte % 16] + ">", 6);
  for (const char* content : {"he", "th", "the", "\u2581the", "us", "er"}) piece(content, 1);
  piece("\u2581", 1);
  for (char letter = 'a'; letter <= 'z'; ++letter) piece(std::string(1, letter), 1);
  for (const char* content : {"|", "<", ">", "[", "]", "/", "\n", ".", "_"}) piece(content, 1);
  field(model, 2, std::string("\x18\x02\x98\x02\x01", 5));      // BPE, with bytes for characters without a piece
  field(model, 3, std::string("\x18\x01\x20\x00\x28\x01", 6));  // a leading space; other blanks unchanged
  return model;
}

}  // namespace zero::test
