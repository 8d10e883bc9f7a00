#pragma once
// Output: the text that the statements of a template, a macro or a block write. Does not include LibTorch.
#include <string>
#include <string_view>
#include <utility>

#include "models/text/jinja/values/value.h"

namespace zero::jinja {

class Output {
 public:
  explicit Output(Budget& budget) : budget_(budget) {}
  Output(const Output&) = delete;
  ~Output() { budget_.give(text_.size()); }

  void write(std::string_view piece) {
    budget_.take(piece.size());
    budget_.write(piece.size());
    budget_.step(static_cast<std::int64_t>(piece.size() / 64));
    text_.append(piece);
  }
  std::size_t characters() {
    counted_ += count_characters(std::string_view(text_).substr(looked_at_));
    looked_at_ = text_.size();
    return counted_;
  }
  std::size_t bytes() const { return text_.size(); }
  std::string take() {
    budget_.give(text_.size());
    return std::exchange(text_, {});
  }

 private:
  Budget& budget_;
  std::string text_;
  std::size_t looked_at_ = 0, counted_ = 0;  // bytes whose code points are counted
};

}  // namespace zero::jinja
