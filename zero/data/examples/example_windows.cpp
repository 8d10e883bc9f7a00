#include "zero/data/examples/example_windows.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "zero/data/examples/example_reader.h"

namespace zero {
namespace {

std::int64_t trained_from(const EncodedExample& example, std::size_t begin) {
  return std::count(example.trained.begin() + static_cast<std::ptrdiff_t>(begin), example.trained.end(),
                    std::uint8_t{1});
}

/// Counts an example, and notes where the first one of its kind lies.
void count(std::int64_t& examples, std::int64_t& first, const std::string& place) {
  ++examples;
  if (first == 0) first = number_in_place(place);
}

/// " (the first: PLACE)", or nothing.
std::string first_of(const std::string& place) { return place.empty() ? "" : text(" (the first: ", place, ")"); }

constexpr const char* unended_answer = "the last trained answer ends with no special token";

// Makes an example of tokens [begin, end).
EncodedExample window_of(const EncodedExample& example, std::size_t begin, std::size_t end) {
  EncodedExample window{.text = "", .ids = {}, .trained = {}, .place = example.place, .kind = example.kind};
  const auto from = static_cast<std::ptrdiff_t>(begin), to = static_cast<std::ptrdiff_t>(end);
  window.ids.assign(example.ids.begin() + from, example.ids.begin() + to);
  window.trained.assign(example.trained.begin() + from, example.trained.begin() + to);
  window.trained[0] = 0;  // nothing precedes it; it was the last target of the previous window
  return window;
}

}  // namespace

Overlong overlong_of(const std::string& name) {
  if (name == "truncate") return Overlong::truncate;
  if (name == "drop") return Overlong::drop;
  throw InputError(text("data.overlong = \"", name, "\" is not known: it is truncate or drop"));
}

ExampleCounts& ExampleCounts::operator+=(const ExampleCounts& other) {
  examples += other.examples;
  cut += other.cut;
  truncated += other.truncated;
  dropped_overlong += other.dropped_overlong;
  dropped_untrained += other.dropped_untrained;
  lost_tokens += other.lost_tokens;
  unended += other.unended;
  dropped_equal += other.dropped_equal;
  blank += other.blank;
  for (const auto first : {&ExampleCounts::first_untrained, &ExampleCounts::first_equal, &ExampleCounts::first_blank})
    if (this->*first == 0) this->*first = other.*first;
  return *this;
}

std::vector<EncodedExample> trained_windows(EncodedExample example, std::int64_t seq_len, Overlong overlong,
                                            ExampleCounts& counts) {
  ++counts.examples;
  counts.unended += example.unended;
  const auto step = static_cast<std::size_t>(seq_len), most = step + 1;
  if (example.is_blank) count(counts.blank, counts.first_blank, example.place);
  const std::string place = example.place;
  std::vector<EncodedExample> windows;
  if (example.ids.size() <= most) {
    windows.push_back(std::move(example));
  } else if (overlong == Overlong::drop) {
    ++counts.dropped_overlong;
    counts.lost_tokens += trained_from(example, 0);
    return {};
  } else if (example.kind == Example::Kind::text) {
    ++counts.cut;
    for (std::size_t begin = 0; begin + 1 < example.ids.size(); begin += step)
      windows.push_back(window_of(example, begin, std::min(begin + most, example.ids.size())));
  } else {
    ++counts.truncated;
    counts.lost_tokens += trained_from(example, most);
    windows.push_back(window_of(example, 0, most));
  }
  if (windows.front().text.empty()) windows.front().text = std::move(example.text);
  std::erase_if(windows, [](const EncodedExample& window) { return trained_from(window, 0) == 0; });
  if (windows.empty()) count(counts.dropped_untrained, counts.first_untrained, place);
  return windows;
}

std::optional<EncodedPair> trained_pair(EncodedPair pair, std::int64_t seq_len, Overlong overlong,
                                        ExampleCounts& counts) {
  ++counts.examples;
  counts.unended += pair.chosen.unended;
  if (pair.are_equal) {
    count(counts.dropped_equal, counts.first_equal, pair.chosen.place);
    return std::nullopt;
  }
  if (pair.chosen.is_blank || pair.rejected.is_blank) count(counts.blank, counts.first_blank, pair.chosen.place);
  const auto most = static_cast<std::size_t>(seq_len) + 1;
  EncodedExample* const sides[] = {&pair.chosen, &pair.rejected};
  const bool too_long = std::ranges::any_of(sides, [&](const EncodedExample* side) { return side->ids.size() > most; });
  if (too_long && overlong == Overlong::drop) {
    ++counts.dropped_overlong;
    for (const EncodedExample* side : sides) counts.lost_tokens += trained_from(*side, 0);
    return std::nullopt;
  }
  counts.truncated += too_long;
  for (EncodedExample* side : sides) {
    if (side->ids.size() <= most) continue;
    counts.lost_tokens += trained_from(*side, most);
    std::string whole = std::move(side->text);
    *side = window_of(*side, 0, most);
    side->text = std::move(whole);
  }
  if (std::ranges::any_of(sides, [](const EncodedExample* side) { return trained_from(*side, 0) == 0; })) {
    count(counts.dropped_untrained, counts.first_untrained, pair.chosen.place);
    return std::nullopt;
  }
  if (pair.chosen.ids != pair.rejected.ids) return pair;
  count(counts.dropped_equal, counts.first_equal, pair.chosen.place);
  return std::nullopt;
}

namespace {

/// The words of messages that depend on the purpose of rows.
struct Words {
  const char *seq_len, *use, *used, *lost;
};

const Words& words_of(RowPurpose purpose) {
  static constexpr Words training{"training.seq_len", "train", "trained", "are not trained"};
  static constexpr Words evaluation{"--seq-len", "judge", "judged", "do not count"};
  return purpose == RowPurpose::training ? training : evaluation;
}

std::string length_of(RowPurpose purpose, std::int64_t seq_len) {
  return text(words_of(purpose).seq_len, purpose == RowPurpose::training ? " = " : " ", seq_len);
}

/// Which examples are lost and why; empty: none.
std::string losses_of(const ExampleCounts& counts, std::int64_t seq_len, const ExamplePlaces& first,
                      const Words& words) {
  const std::int64_t lost = counts.dropped_overlong + counts.dropped_untrained + counts.dropped_equal;
  if (lost == 0) return "";
  const std::string within = counts.truncated > 0 ? text(" in their first ", seq_len, " tokens") : "";
  std::string reasons;
  const auto add = [&](std::int64_t examples, const auto&... reason) {
    if (examples > 0) reasons += text(reasons.empty() ? "" : ", ", examples, reason...);
  };
  add(counts.dropped_overlong, " are left out as too long");
  add(counts.dropped_untrained, " have nothing to ", words.use, within, first_of(first.untrained));
  add(counts.dropped_equal, " have equal answers", within, first_of(first.equal));
  return text(lost, " of ", counts.examples, " examples are lost: ", reasons);
}

std::string remedy_of(const ExampleCounts& counts, RowPurpose purpose) {
  const Words& words = words_of(purpose);
  if (counts.dropped_overlong > 0)
    return "raise training.seq_len, or keep the starts of examples by data.overlong = \"truncate\"";
  if (counts.truncated > 0)
    return text("all that is ", words.used, counts.dropped_equal > 0 ? " or differs" : "", " lies beyond ",
                words.seq_len, ": raise it; zero_train --preview tells how long an example is");
  if (counts.dropped_equal > 0) return "\"chosen\" and \"rejected\" must differ: look at what wrote them";
  if (purpose == RowPurpose::evaluation)
    return "\"weight\", \"train\" or \"training\" of the messages may say that none counts, or the assistant says nothing";
  return "look with --preview at what is trained of the data: \"weight\", \"train\" or \"training\" of its messages may say "
         "that nothing is, or the assistant says nothing";
}

}  // namespace

std::string warning_of(const ExampleCounts& counts, std::int64_t seq_len, const ExamplePlaces& first,
                       RowPurpose purpose) {
  const Words& words = words_of(purpose);
  const std::int64_t overlong = counts.truncated + counts.dropped_overlong;
  std::string warning = losses_of(counts, seq_len, first, words);
  if (overlong > 0)
    warning += text(warning.empty() ? "" : "; ", overlong, " of ", counts.examples, " examples are longer than ",
                    length_of(purpose, seq_len), ", and ", counts.lost_tokens, " of their tokens ", words.lost,
                    ": raise ", words.seq_len, " to ", words.use, " them");
  if (counts.blank > 0)
    warning += text(warning.empty() ? "" : ". ", "In ", counts.blank, " of ", counts.examples,
                    " examples an answer is empty or white space", first_of(first.blank),
                    purpose == RowPurpose::evaluation
                        ? ""
                        : ": the model learns to say nothing there, or not to; leave them out if that is not meant");
  if (counts.unended > 0 && purpose == RowPurpose::training)
    warning += text(
        warning.empty() ? "" : ". ", "In ", counts.unended, " of ", counts.examples, " examples ", unended_answer,
        ", so the model does not learn to stop: the chat template writes none there, or its {% generation %} blocks end "
        "before it; name a copy of the template that ends answers with {{ eos_token }} by data.chat_template. "
        "Completions and texts end with the tokenizer's eos_token: name one in tokenizer_config.json");
  return warning;
}

std::string refusal_of(const ExampleCounts& counts, std::int64_t seq_len, const ExamplePlaces& first,
                       RowPurpose purpose) {
  const Words& words = words_of(purpose);
  const std::string& place = first.equal.empty() ? first.untrained : first.equal;
  return text("nothing is left to ", words.use, " with ", length_of(purpose, seq_len), " (", counts.examples,
              counts.examples == 1 ? " example, " : " examples, ", counts.dropped_overlong,
              " of them left out as too long, ", counts.dropped_untrained, " without anything to ", words.use,
              counts.dropped_equal > 0 ? text(", ", counts.dropped_equal, " with equal answers") : "",
              place.empty() ? "" : "; the first: " + place, "): ", remedy_of(counts, purpose));
}

std::string note_of(const ExampleCounts& one, std::size_t tokens, std::int64_t seq_len) {
  const std::string beyond = text("beyond training.seq_len = ", seq_len);
  if (one.dropped_overlong > 0) return text("left out, since it goes ", beyond);
  if (one.dropped_equal > 0)
    return text("left out, since \"chosen\" and \"rejected\" are equal",
                one.truncated > 0 ? text(" up to training.seq_len = ", seq_len) : "");
  if (one.dropped_untrained > 0)
    return one.truncated > 0 ? text("left out, since all that is trained lies ", beyond)
                             : "left out, since nothing of it is trained";
  std::string note = one.truncated > 0 ? text("the start of ", tokens, ": the rest lies ", beyond) : "";
  if (one.blank > 0) note += text(note.empty() ? "" : "; ", "an answer is empty or white space");
  if (one.unended > 0) note += text(note.empty() ? "" : "; ", unended_answer);
  return note;
}

}  // namespace zero
