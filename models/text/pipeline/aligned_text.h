#pragma once
// AlignedText: a text in the pipeline and, on request, the position in the original text from which each byte comes.
// Rewritten bytes inherit positions as in Hugging Face tokenizers (tokenizer/normalizer.rs). Does not include LibTorch.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

/// Bytes [begin, end) of the original text, which form one character.
struct Origin {
  std::uint32_t begin = 0, end = 0;
};

struct AlignedText {
  std::string text;
  bool aligned = false;
  std::vector<Origin> origins;  // one per byte if the text is aligned, otherwise empty

  /// Sets each byte's origin to the character that contains it. `offset` is where the text starts in the original.
  void align(std::size_t offset);
};

/// Rewrites a text from left to right.
class TextRewriter {
 public:
  /// `room` is the approximate size of the result in bytes.
  TextRewriter(AlignedText& text, std::size_t room) : text_(text) {
    made_.reserve(room);
    if (text.aligned) origins_.reserve(room);
  }

  /// Appends new bytes with the origin of the old byte at `from`.
  void put(std::string_view bytes, std::size_t from) {
    made_ += bytes;
    if (!text_.aligned) return;
    origins_.insert(origins_.end(), bytes.size(), from < text_.origins.size() ? text_.origins[from] : Origin{});
  }
  /// Appends old bytes unchanged.
  void keep(std::size_t begin, std::size_t end) {
    made_.append(text_.text, begin, end - begin);
    if (!text_.aligned) return;
    const auto first = text_.origins.begin() + static_cast<std::ptrdiff_t>(begin);
    origins_.insert(origins_.end(), first, first + static_cast<std::ptrdiff_t>(end - begin));
  }

  /// Replaces each old byte by the output of `write(byte, out)`.
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

  /// Replaces the text by the result.
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
