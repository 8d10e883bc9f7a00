#include "models/text/pipeline/unicode/regular_expression.h"

#include <oniguruma.h>

#include <array>
#include <deque>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "models/text/pipeline/unicode/general_category.h"

namespace zero {
namespace {

const OnigUChar* bytes_of(std::string_view text) { return reinterpret_cast<const OnigUChar*>(text.data()); }

std::string message_of(int code, OnigErrorInfo* info = nullptr) {
  std::array<OnigUChar, ONIG_MAX_ERROR_MESSAGE_LEN> message{};
  const int length = onig_error_code_to_str(message.data(), code, info);
  return {reinterpret_cast<const char*>(message.data()), static_cast<std::size_t>(length)};
}

/// The library's properties by name, process-wide; it keeps at most 20 that users define, and those for good.
class Categories {
 public:
  /// Defines the categories that a pattern names as \p{...} or \P{...}.
  void define_for(std::string_view pattern) {
    for (std::size_t at = 0; at + 1 < pattern.size(); at += pattern[at] == '\\' ? 2 : 1) {
      const bool property = pattern[at] == '\\' && (pattern[at + 1] == 'p' || pattern[at + 1] == 'P');
      if (!property || at + 2 >= pattern.size() || pattern[at + 2] != '{') continue;
      const std::size_t begin = at + 3 + (pattern.substr(at + 3, 1) == "^"), end = pattern.find('}', begin);
      if (end != std::string_view::npos) define(pattern.substr(begin, end - begin));
    }
  }

 private:
  void define(std::string_view name) {
    constexpr std::size_t most = 20;
    if (name.size() > 2 || known_.size() == most || known_.contains(name)) return;
    const auto ranges = ranges_of_category(name);
    if (ranges.empty()) return;
    auto& held = held_.emplace_back();
    held.push_back(static_cast<OnigCodePoint>(ranges.size()));
    for (const auto& [first, last] : ranges) held.insert(held.end(), {first, last});
    const std::string& key = known_.emplace(name, held.data()).first->first;
    onig_unicode_define_user_property(key.c_str(), held.data());
  }

  std::map<std::string, const OnigCodePoint*, std::less<>> known_;
  std::deque<std::vector<OnigCodePoint>> held_;
};

/// Patterns are made one at a time: the library's tables are the process's.
std::mutex making;

}  // namespace

struct RegularExpression::State {
  State(const std::string& pattern, const std::string& place) : place(place) {
    const std::scoped_lock lock(making);
    static const bool ready = [] {
      OnigEncoding encoding = ONIG_ENCODING_UTF8;
      return onig_initialize(&encoding, 1) == ONIG_NORMAL;
    }();
    ZERO_CHECK(ready, "Oniguruma does not start");
    static Categories& categories = *new Categories;  // the library points into it until the process ends
    categories.define_for(pattern);
    OnigErrorInfo info{};
    const OnigUChar* begin = bytes_of(pattern);
    const int code = onig_new(&regex, begin, begin + pattern.size(), ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                              ONIG_SYNTAX_DEFAULT, &info);
    if (code != ONIG_NORMAL)
      throw InputError(text(place, ": \"", pattern,
                            "\" must be a regular expression that Oniguruma knows: ", message_of(code, &info)));
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { onig_free(regex); }

  regex_t* regex = nullptr;
  std::string place;
};

RegularExpression::RegularExpression(const std::string& pattern, const std::string& place)
    : state_(std::make_unique<State>(pattern, place)) {}
RegularExpression::RegularExpression(RegularExpression&&) noexcept = default;
RegularExpression::~RegularExpression() = default;

void RegularExpression::find_all(std::string_view text, std::vector<TextSpan>& matches) const {
  const OnigUChar *begin = bytes_of(text), *end = begin + text.size();
  const std::unique_ptr<OnigRegion, void (*)(OnigRegion*)> region(onig_region_new(),
                                                                  [](OnigRegion* one) { onig_region_free(one, 1); });
  std::size_t from = 0, last = std::string_view::npos;
  while (from <= text.size()) {
    const int found = onig_search(state_->regex, begin, end, begin + from, end, region.get(), ONIG_OPTION_NONE);
    if (found == ONIG_MISMATCH) return;
    if (found < 0)
      throw InputError(zero::text(state_->place, ": the regular expression failed on a text: ", message_of(found)));
    const TextSpan match{static_cast<std::size_t>(region->beg[0]), static_cast<std::size_t>(region->end[0])};
    if (match.begin == match.end && match.end == last) {
      if (from >= text.size()) return;
      from += first_character(text.substr(from)).size();
      continue;
    }
    matches.push_back(match);
    from = last = match.end;
  }
}

}  // namespace zero
