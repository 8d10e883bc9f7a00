#include "models/text/pipeline/unicode/pattern.h"

#include "base/utf8.h"
#include "models/text/pipeline/unicode/regular_expression.h"

namespace zero {
namespace {

class StringPattern : public Pattern {
 public:
  explicit StringPattern(std::string text) : text_(std::move(text)) {}
  void find_all(std::string_view text, std::vector<TextSpan>& matches) const override {
    for (std::size_t at = text.find(text_); at != std::string_view::npos; at = text.find(text_, at + text_.size()))
      matches.push_back({at, at + text_.size()});
  }

 private:
  std::string text_;
};

class RegexPattern : public Pattern {
 public:
  RegexPattern(const std::string& pattern, const std::string& place) : regex_(pattern, place) {}
  void find_all(std::string_view text, std::vector<TextSpan>& matches) const override {
    regex_.find_all(text, matches);
  }

 private:
  RegularExpression regex_;
};

class ClassPattern : public Pattern {
 public:
  explicit ClassPattern(bool (*holds)(char32_t)) : holds_(holds) {}
  void find_all(std::string_view text, std::vector<TextSpan>& matches) const override {
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view character = first_character(text.substr(at));
      if (holds_(code_point(character))) matches.push_back({at, at + character.size()});
      at += character.size();
    }
  }

 private:
  bool (*holds_)(char32_t);
};

}  // namespace

std::unique_ptr<const Pattern> string_pattern(std::string text, const std::string& place) {
  if (text.empty()) return regex_pattern("", place);
  return std::make_unique<StringPattern>(std::move(text));
}

std::unique_ptr<const Pattern> regex_pattern(const std::string& pattern, const std::string& place) {
  return std::make_unique<RegexPattern>(pattern, place);
}

std::unique_ptr<const Pattern> class_pattern(bool (*holds)(char32_t)) { return std::make_unique<ClassPattern>(holds); }

}  // namespace zero
