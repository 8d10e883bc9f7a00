#include "models/text/pipeline/splits.h"

#include <algorithm>

#include "models/text/pipeline/unicode/pattern.h"

namespace zero {
namespace {

struct Stretch {
  std::size_t begin, end;
  bool match;
};

/// The whole text: matches and the text between them.
void cover(std::string_view text, const std::vector<TextSpan>& matches, bool invert, std::vector<Stretch>& stretches) {
  std::size_t done = 0;
  for (const TextSpan& match : matches) {
    if (done != match.begin) stretches.push_back({done, match.begin, invert});
    stretches.push_back({match.begin, match.end, !invert});
    done = match.end;
  }
  if (done != text.size()) stretches.push_back({done, text.size(), invert});
}

/// Joins adjacent pieces from left to right if `joins(match, match of the previous piece)` is true.
template <class Joins>
void join(std::vector<Stretch>& stretches, const Joins& joins) {
  std::size_t kept = 0;
  bool before = false;
  for (const Stretch next : stretches) {
    if (kept > 0 && joins(next.match, before)) {
      stretches[kept - 1].begin = std::min(stretches[kept - 1].begin, next.begin);
      stretches[kept - 1].end = std::max(stretches[kept - 1].end, next.end);
    } else {
      stretches[kept++] = next;
    }
    before = next.match;
  }
  stretches.resize(kept);
}

void apply(SplitBehavior behavior, std::vector<Stretch>& stretches) {
  const auto opens = [](bool match, bool before) { return match && !before; };
  switch (behavior) {
    case SplitBehavior::isolated:
      break;
    case SplitBehavior::removed:
      std::erase_if(stretches, [](const Stretch& one) { return one.match; });
      break;
    case SplitBehavior::contiguous:
      join(stretches, [](bool match, bool before) { return match == before; });
      break;
    case SplitBehavior::merged_with_previous:
      join(stretches, opens);
      break;
    case SplitBehavior::merged_with_next:
      std::reverse(stretches.begin(), stretches.end());
      join(stretches, opens);
      std::reverse(stretches.begin(), stretches.end());
      break;
  }
}

}  // namespace

void divide(Splits& splits, const Pattern& pattern, SplitBehavior behavior, bool invert) {
  std::vector<Split> parts;
  std::vector<TextSpan> matches;
  std::vector<Stretch> stretches;
  parts.reserve(splits.parts.size());
  for (const Split& part : splits.parts) {
    if (part.id >= 0) {
      parts.push_back(part);
      continue;
    }
    const std::string_view text = splits.of(part);
    matches.clear();
    stretches.clear();
    pattern.find_all(text, matches);
    cover(text, matches, invert, stretches);
    apply(behavior, stretches);
    for (const Stretch& one : stretches)
      if (one.begin != one.end)
        parts.push_back({part.begin + one.begin, part.begin + one.end, -1, part.first && one.begin == 0});
  }
  splits.parts = std::move(parts);
}

}  // namespace zero
