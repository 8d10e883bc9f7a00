#include "zero/data/rows/joined_rows.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

template <class Words>
std::string joined_words(const std::vector<std::shared_ptr<const RowSource>>& sources, const Words& words) {
  std::string all;
  for (const auto& source : sources)
    if (const std::string own = words(*source); !own.empty()) all += (all.empty() ? "" : "; ") + own;
  return all;
}

}  // namespace

JoinedRows::JoinedRows(std::vector<std::shared_ptr<const RowSource>> sources) : sources_(std::move(sources)) {
  ZERO_CHECK(!sources_.empty(), "rows come from a source");
  for (const auto& source : sources_) starts_.push_back(starts_.back() + source->size());
}

std::pair<const RowSource&, std::int64_t> JoinedRows::at(std::int64_t index) const {
  ZERO_CHECK(index >= 0 && index < size(), text("row ", index, " of ", size()));
  const auto source = std::size_t(std::upper_bound(starts_.begin(), starts_.end(), index) - starts_.begin() - 1);
  return {*sources_[source], index - starts_[source]};
}

Row JoinedRows::row(std::int64_t index) const {
  const auto [source, own] = at(index);
  return source.row(own);
}

std::int64_t JoinedRows::trained_tokens(std::int64_t index) const {
  const auto [source, own] = at(index);
  return source.trained_tokens(own);
}

std::int64_t JoinedRows::first_trained(std::int64_t index) const {
  const auto [source, own] = at(index);
  return source.first_trained(own);
}

std::int64_t JoinedRows::length(std::int64_t index) const {
  const auto [source, own] = at(index);
  return source.length(own);
}

std::string JoinedRows::describe() const {
  return joined_words(sources_, [](const RowSource& source) { return source.describe(); });
}

std::string JoinedRows::warning() const {
  return joined_words(sources_, [](const RowSource& source) { return source.warning(); });
}

std::shared_ptr<const RowSource> joined(std::vector<std::shared_ptr<const RowSource>> sources) {
  return sources.size() == 1 ? sources.front() : std::make_shared<JoinedRows>(std::move(sources));
}

}  // namespace zero
