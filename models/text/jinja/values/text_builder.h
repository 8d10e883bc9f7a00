#pragma once
// TextBuilder: a text that grows, charged to a budget while it does. No LibTorch.
#include <string>
#include <string_view>
#include <utility>

#include "models/text/jinja/values/value.h"

namespace zero::jinja {

class TextBuilder {
 public:
  explicit TextBuilder(Budget* budget) : budget_(budget) {}
  TextBuilder(const TextBuilder&) = delete;
  ~TextBuilder() { release(); }

  TextBuilder& operator+=(std::string_view piece) {
    if (budget_) {
      budget_->take(piece.size());
      charged_ += piece.size();
      budget_->step(static_cast<std::int64_t>(piece.size() / 64));
    }
    text_.append(piece);
    return *this;
  }
  TextBuilder& operator+=(char c) { return *this += std::string_view(&c, 1); }
  TextBuilder& add(std::string_view piece, std::int64_t times) {
    for (std::int64_t i = 0; i < times && !piece.empty(); ++i) {
      if (budget_) budget_->step();
      *this += piece;
    }
    return *this;
  }

  const std::string& text() const { return text_; }
  std::string take() {
    release();
    return std::exchange(text_, {});
  }
  Value value(bool markup = false) { return make_string(budget_, take(), markup); }

 private:
  void release() {
    if (budget_) budget_->give(charged_);
    charged_ = 0;
  }

  Budget* budget_;
  std::string text_;
  std::size_t charged_ = 0;
};

}  // namespace zero::jinja
