#pragma once
// RowSource: the rows (training sequences) that a run's input files amount to, by number. No LibTorch.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace zero {

/// One sequence of T tokens, not yet padded. targets[t] is what the model should say after ids[0..t], or
/// ignored_target (models/unit.h) where nothing is trained.
struct Row {
  std::vector<std::int64_t> ids;        // [T]
  std::vector<std::int64_t> targets;    // [T]
  std::vector<std::int64_t> positions;  // [T] position in its document; empty when the row is one document
  std::vector<std::int32_t> documents;  // [T] document number inside the row, from 0; empty likewise
  // For the loss alone (models/loss):
  std::vector<float> weights = {};                                 // [T] of the targets; empty: all 1
  float weight = 1;                                                // of the row
  std::map<std::string, std::vector<float>> named = {};            // [k], k the same in all rows
  std::map<std::string, std::vector<float>> named_of_tokens = {};  // [T]
};

/// Rows 0 .. size()-1, the same on every rank. Reads are thread-safe and never communicate.
class RowSource {
 public:
  virtual ~RowSource() = default;

  virtual std::int64_t size() const = 0;
  virtual Row row(std::int64_t index) const = 0;

  /// The number of targets of a row that are trained, without building the row.
  virtual std::int64_t trained_tokens(std::int64_t index) const = 0;

  /// The number of ids of a row, without building it.
  virtual std::int64_t length(std::int64_t index) const = 0;

  /// The names of what all rows have in Row::named or Row::named_of_tokens.
  virtual std::vector<std::string> names() const { return {}; }

  /// One line for people: what there is, and what was left out.
  virtual std::string describe() const = 0;

  /// For people, what of the files is not trained though it could be; empty when there is nothing to say.
  virtual std::string warning() const { return ""; }
};

}  // namespace zero
