#include "models/text/character_map.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/utf8.h"

namespace zero {
namespace {

constexpr int most_rules = 32;  // that SentencePiece holds for the rules of one place in a text
constexpr int unseen = -1, under_way = -2;

/// One unit of the double array, as the Darts-clone library packs it.
struct Unit {
  std::uint32_t bits;
  std::uint32_t label() const { return bits & (0x80000000u | 0xFF); }
  bool has_rule() const { return bits >> 8 & 1; }
  std::uint32_t offset() const { return (bits >> 10) << ((bits & 0x200) >> 6); }
  std::uint32_t value() const { return bits & 0x7FFFFFFF; }
};

class Walk {
 public:
  Walk(std::vector<Unit> units, std::string_view texts)
      : units_(std::move(units)), texts_(texts), rules_(units_.size(), unseen), read_(texts.size(), false) {}

  /// Visits every reachable entry, deepest first. An entry is finished once all entries after it are known.
  const char* fault() {
    if (const char* fault = enter(units_[0].offset())) return fault;
    while (!path_.empty()) {
      Step& step = path_.back();
      if (step.next == 256) {
        leave();
        continue;
      }
      const std::uint32_t byte = step.next++;
      const Unit unit = units_[step.place ^ byte];
      if (unit.label() != byte) continue;
      const std::uint32_t place = (step.place ^ byte) ^ unit.offset();
      step.has_rule = unit.has_rule();
      if (place >= units_.size()) return "leads out of its own table";
      if (unit.has_rule() && units_[place].value() >= texts_.size()) return "names a text beyond its texts";
      if (unit.has_rule() && !is_text_from(units_[place].value())) return "names a text that is not UTF-8";
      if (rules_[place] == under_way) return "goes round in a circle";
      if (rules_[place] != unseen)
        count(step, rules_[place]);
      else if (const char* fault = enter(place))
        return fault;
    }
    return most_ > most_rules ? "has more rules for one place than SentencePiece can hold" : nullptr;
  }

 private:
  struct Step {
    std::uint32_t place, next = 0;
    int most = 0;           // rules met behind this place on one way
    bool has_rule = false;  // on the way to the place under way
  };

  const char* enter(std::uint32_t place) {
    if ((place | 0xFF) >= units_.size()) return "leads out of its own table";
    rules_[place] = under_way;
    path_.push_back({place});
    return nullptr;
  }
  /// True if the bytes from here to the next zero are valid UTF-8. Rules may share texts, so each text is checked only
  /// once.
  bool is_text_from(std::size_t at) {
    while (texts_[at] != '\0' && !read_[at]) {
      const std::string_view character = texts_.substr(at, utf8_length(static_cast<unsigned char>(texts_[at])));
      if (character.empty() || (character.size() > 1 && !is_utf8(character))) return false;
      read_[at] = true;
      at += character.size();
    }
    return true;
  }
  void count(Step& step, int behind) { step.most = std::max(step.most, behind + step.has_rule); }
  void leave() {
    const Step done = path_.back();
    path_.pop_back();
    rules_[done.place] = most_ = done.most;
    if (!path_.empty()) count(path_.back(), done.most);
  }

  std::vector<Unit> units_;
  std::string_view texts_;
  std::vector<int> rules_;  // by place: the most rules behind it
  std::vector<bool> read_;  // characters of texts that begin here, and are UTF-8
  std::vector<Step> path_;
  int most_ = 0;
};

}  // namespace

const char* fault_of_character_map(std::string_view map) {
  if (map.empty()) return nullptr;
  std::uint32_t bytes = 0;
  if (map.size() <= sizeof bytes) return "is cut short";
  std::memcpy(&bytes, map.data(), sizeof bytes);
  map.remove_prefix(sizeof bytes);
  if (bytes >= map.size() || bytes % sizeof(Unit) != 0 || bytes < sizeof(Unit)) return "is cut short";
  if (map.back() != '\0') return "has texts without end";
  std::vector<Unit> units(bytes / sizeof(Unit));
  std::memcpy(units.data(), map.data(), bytes);
  return Walk(std::move(units), map.substr(bytes)).fault();
}

}  // namespace zero
