#pragma once
// JoinedRows: the rows of several sources, one source after the other. No LibTorch.
#include <memory>
#include <utility>
#include <vector>

#include "zero/data/rows/row_source.h"

namespace zero {

class JoinedRows final : public RowSource {
 public:
  /// Rows of all sources have the same named tensors.
  explicit JoinedRows(std::vector<std::shared_ptr<const RowSource>> sources);

  std::int64_t size() const override { return starts_.back(); }
  Row row(std::int64_t index) const override;
  std::int64_t trained_tokens(std::int64_t index) const override;
  std::int64_t first_trained(std::int64_t index) const override;
  std::int64_t length(std::int64_t index) const override;
  std::vector<std::string> named_tensors() const override { return sources_.front()->named_tensors(); }
  std::string describe() const override;
  std::string warning() const override;

 private:
  /// The source of a row, and the row's number in it.
  std::pair<const RowSource&, std::int64_t> at(std::int64_t index) const;

  std::vector<std::shared_ptr<const RowSource>> sources_;
  std::vector<std::int64_t> starts_ = {0};  // first row of each source, and the end
};

/// One source stays itself.
std::shared_ptr<const RowSource> joined(std::vector<std::shared_ptr<const RowSource>> sources);

}  // namespace zero
