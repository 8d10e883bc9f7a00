#pragma once
// TextBuilder: a growing text that is charged to a budget. Does not include LibTorch.
#include <algorithm>
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
    charge(piece.size());
    text_.append(piece);
    return *this;
  }
  TextBuilder& operator+=(char c) { return *this += std::string_view(&c, 1); }
  TextBuilder& add(std::string_view piece, std::int64_t times) {
    if (times <= 0 || piece.empty()) return *this;
    if (budget_) {
      constexpr std::int64_t too_many = std::int64_t{1} << 40;  // for any budget
      const auto size = static_cast<std::int64_t>(piece.size());
      charge(static_cast<std::size_t>(times > too_many / size ? too_many : size * times));
      budget_->step(times);
    }
    for (std::int64_t i = 0; i < times; ++i) text_.append(piece);
    return *this;
  }

  const std::string& text() const { return text_; }
  std::string take() {
    release();
    return std::exchange(text_, {});
  }
  Value value(bool markup = false) { return make_string(budget_, take(), markup); }

 private:
  void charge(std::size_t bytes) {
    if (!budget_) return;
    budget_->take(bytes);
    charged_ += bytes;
    budget_->step(static_cast<std::int64_t>(bytes / 64));
  }
  void release() {
    if (budget_) budget_->give(charged_);
    charged_ = 0;
  }

  Budget* budget_;
  std::string text_;
  std::size_t charged_ = 0;
};

}  // namespace zero::jinja
