#pragma once
// AlignedText: a text on its way through the pipeline and, where that is asked for, the place in the original that each
// of its bytes came from. The rules of who inherits whose place are those of Hugging Face tokenizers,
// tokenizer/normalizer.rs. No LibTorch.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

/// Bytes [begin, end) of the original: one character of it.
struct Origin {
  std::uint32_t begin = 0, end = 0;
};

struct AlignedText {
  std::string text;
  bool aligned = false;
  std::vector<Origin> origins;  // one of each byte of the text where it is aligned, else none

  /// Gives every byte the character that it is part of; `offset` is where the text begins in the original.
  void align(std::size_t offset);
};

/// Makes a text anew from left to right.
class TextRewriter {
 public:
  /// `room`: about how many bytes there will be.
  TextRewriter(AlignedText& text, std::size_t room) : text_(text) {
    made_.reserve(room);
    if (text.aligned) origins_.reserve(room);
  }

  /// New bytes that stand where the old byte at `from` stood.
  void put(std::string_view bytes, std::size_t from) {
    made_ += bytes;
    if (!text_.aligned) return;
    origins_.insert(origins_.end(), bytes.size(), from < text_.origins.size() ? text_.origins[from] : Origin{});
  }
  /// Old bytes as they are.
  void keep(std::size_t begin, std::size_t end) {
    made_.append(text_.text, begin, end - begin);
    if (!text_.aligned) return;
    const auto first = text_.origins.begin() + static_cast<std::ptrdiff_t>(begin);
    origins_.insert(origins_.end(), first, first + static_cast<std::ptrdiff_t>(end - begin));
  }

  /// Old bytes one by one by what `write(byte, out)` appends for each.
  template <class Write>
  void transcribe(std::size_t begin, std::size_t end, const Write& write) {
    const std::string_view old = std::string_view(text_.text).substr(begin, end - begin);
    if (!text_.aligned) return write(old, made_);
    for (std::size_t at = 0; at < old.size(); ++at) {
      write(old.substr(at, 1), made_);
      origins_.resize(made_.size(), text_.origins[begin + at]);
    }
  }

  std::size_t size() const { return made_.size(); }

  /// The text is what was made.
  void finish() {
    text_.text = std::move(made_);
    text_.origins = std::move(origins_);
  }

 private:
  AlignedText& text_;
  std::string made_;
  std::vector<Origin> origins_;
};

}  // namespace zero
