#pragma once
// RowSource: the rows (training sequences) in a run's input files, by number. No LibTorch.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace zero {

/// One sequence of T tokens, not padded. targets[t] is the token to predict after ids[0..t], or ignored_target
/// (models/unit.h) if it is not trained.
struct Row {
  std::vector<std::int64_t> ids;        // [T]
  std::vector<std::int64_t> targets;    // [T]
  std::vector<std::int64_t> positions;  // [T] position in its document; empty if the row is one document
  std::vector<std::int32_t> documents;  // [T] document number in the row, from 0; empty if the row is one document
  // For the loss only (models/loss):
  std::vector<float> weights = {};                                 // [T] weights of the targets; empty: all 1
  float weight = 1;                                                // of the row
  std::map<std::string, std::vector<float>> named = {};            // [k], k the same in all rows
  std::map<std::string, std::vector<float>> named_of_tokens = {};  // [T]
};

/// Rows 0 .. size()-1, equal on all ranks. Reads are thread-safe and never communicate.
class RowSource {
 public:
  virtual ~RowSource() = default;

  virtual std::int64_t size() const = 0;
  virtual Row row(std::int64_t index) const = 0;

  /// The number of trained targets of a row, without building the row.
  virtual std::int64_t trained_tokens(std::int64_t index) const = 0;

  /// The number of trained targets of a row's first document, without building the row.
  virtual std::int64_t first_trained(std::int64_t index) const { return trained_tokens(index); }

  /// The number of ids of a row, without building the row.
  virtual std::int64_t length(std::int64_t index) const = 0;

  /// The names that all rows have in Row::named or Row::named_of_tokens.
  virtual std::vector<std::string> named_tensors() const { return {}; }

  /// Returns one human-readable line: the contents, and what was omitted.
  virtual std::string describe() const = 0;

  /// Returns a message about data that could be trained but is not; empty if there is none.
  virtual std::string warning() const { return ""; }
};

}  // namespace zero
