#pragma once
// Examples longer than seq_len: the parts that are trained, and counts of the rest. No LibTorch.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zero/data/examples/conversation_encoder.h"
#include "zero/data/examples/preference_pair.h"

namespace zero {

/// Treatment of an example with more than seq_len + 1 tokens. `truncate` cuts a text into windows, and keeps the start
/// of a conversation or completion. `drop` omits the example.
enum class Overlong : std::uint8_t { truncate, drop };

/// Parses "truncate" or "drop". Throws InputError for any other name.
Overlong overlong_of(const std::string& name);

/// The use of rows. Messages name the settings of zero_train, or the options of zero_evaluate.
enum class RowPurpose : std::uint8_t { training, evaluation };

/// Counts of examples by outcome. Only tokens that would have been trained are counted.
struct ExampleCounts {
  std::int64_t examples = 0;
  std::int64_t cut = 0;  // texts cut into several windows
  std::int64_t truncated = 0;
  std::int64_t dropped_overlong = 0;
  std::int64_t dropped_untrained = 0;  // without a trained token after truncation
  std::int64_t lost_tokens = 0;        // past the end of truncated examples, and in examples dropped as too long
  std::int64_t unended = 0;            // conversations whose last trained reply ends without a special token
  std::int64_t dropped_equal = 0;      // pairs whose answers are equal, as far as they are kept
  std::int64_t blank = 0;              // examples with an answer of nothing but white space
  // The line or row of the first of these examples in its file; 0: none.
  std::int64_t first_untrained = 0, first_equal = 0, first_blank = 0;

  ExampleCounts& operator+=(const ExampleCounts& other);
};

/// Returns the trained parts of an example: none, all of it, its start, or windows of seq_len + 1 tokens. Windows
/// overlap by one token, so each token of a text except the first is a target in one window. Each part has a trained
/// token. The first part keeps the text.
std::vector<EncodedExample> trained_windows(EncodedExample example, std::int64_t seq_len, Overlong overlong,
                                            ExampleCounts& counts);

/// Where the first examples of a kind lie, such as "pairs.jsonl:17", for messages; empty: unknown.
struct ExamplePlaces {
  std::string untrained, equal, blank;
};

/// The trained part of a pair whose sequences have at most seq_len inputs each. Returns none if one of them has no
/// trained token left, or if both are equal. `truncate` keeps the starts of sequences, `drop` omits the pair.
std::optional<EncodedPair> trained_pair(EncodedPair pair, std::int64_t seq_len, Overlong overlong,
                                        ExampleCounts& counts);

/// Returns a message about lost tokens and how to keep them, about answers without text, and about replies without an
/// end; may be empty.
std::string warning_of(const ExampleCounts& counts, std::int64_t seq_len, const ExamplePlaces& first = {},
                       RowPurpose purpose = RowPurpose::training);

/// Returns the refusal for the case that no example has a trained token left, with the remedy that the counts suggest.
std::string refusal_of(const ExampleCounts& counts, std::int64_t seq_len, const ExamplePlaces& first,
                       RowPurpose purpose);

/// Returns a note on one example of `tokens` tokens, from its own counts: why it is omitted, or where it ends. Empty if
/// all of it is trained.
std::string note_of(const ExampleCounts& one, std::size_t tokens, std::int64_t seq_len);

}  // namespace zero
