#include "zero/data/rows/loader.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr std::int64_t filling_id = 0;

// Fills [B, T] with `filling`, then copies each row's values. Rows without values get 0, 1, 2, ... x step instead.
template <class Value>
at::Tensor stack(const std::vector<Row>& rows, std::int64_t longest, std::vector<Value> Row::*values, Value filling,
                 Value step) {
  const at::Tensor tensor_BT = at::full({static_cast<std::int64_t>(rows.size()), longest},
                                        static_cast<std::int64_t>(filling), c10::CppTypeToScalarType<Value>::value);
  auto* to = tensor_BT.mutable_data_ptr<Value>();
  for (const Row& row : rows) {
    const std::vector<Value>& from = row.*values;
    for (std::size_t t = 0; t < row.ids.size(); ++t) to[t] = from.empty() ? static_cast<Value>(t) * step : from[t];
    to += longest;
  }
  return tensor_BT;
}

/// Returns [B, k]: the rows' tensors of that name.
at::Tensor named_of_rows(const std::vector<Row>& rows, const std::string& name) {
  const auto k = std::int64_t(rows.front().named.at(name).size());
  const at::Tensor tensor = at::empty({std::int64_t(rows.size()), k}, at::kFloat);
  auto* to = tensor.mutable_data_ptr<float>();
  for (const Row& row : rows) {
    const auto found = row.named.find(name);
    ZERO_CHECK(found != row.named.end() && std::int64_t(found->second.size()) == k, "rows differ in " + name);
    to = std::copy(found->second.begin(), found->second.end(), to);
  }
  return tensor;
}

/// Returns [B, T], filled with `missing` for rows without values, and with 0 after a row's end.
at::Tensor numbers_of_tokens(const std::vector<Row>& rows, std::int64_t longest, float missing,
                             const std::function<const std::vector<float>*(const Row&)>& numbers) {
  const at::Tensor tensor_BT = at::zeros({std::int64_t(rows.size()), longest}, at::kFloat);
  auto* to = tensor_BT.mutable_data_ptr<float>();
  for (const Row& row : rows) {
    const std::vector<float>* from = numbers(row);
    ZERO_CHECK(!from || from->empty() || from->size() == row.ids.size(), "a row's numbers of tokens differ in length");
    if (!from || from->empty())
      std::fill_n(to, row.ids.size(), missing);
    else
      std::copy(from->begin(), from->end(), to);
    to += longest;
  }
  return tensor_BT;
}

/// Adds the tensors that only the loss reads.
void add_for_loss(Batch& batch, const std::vector<Row>& rows, std::int64_t longest) {
  if (rows.empty()) return;
  if (std::ranges::any_of(rows, [](const Row& row) { return !row.weights.empty(); }))
    batch.token_weights = numbers_of_tokens(rows, longest, 1, [](const Row& row) { return &row.weights; });
  if (std::ranges::any_of(rows, [](const Row& row) { return row.weight != 1; })) {
    std::vector<float> each;
    for (const Row& row : rows) each.push_back(row.weight);
    batch.row_weights = at::tensor(each, at::kFloat);
  }
  for (const auto& [name, first] : rows.front().named) batch.named[name] = named_of_rows(rows, name);
  for (const auto& entry : rows.front().named_of_tokens)
    batch.named[entry.first] = numbers_of_tokens(rows, longest, 0, [&](const Row& row) {
      const auto found = row.named_of_tokens.find(entry.first);
      return found == row.named_of_tokens.end() ? nullptr : &found->second;
    });
}

RowCounts counts_of(const RowSource& source, std::int64_t row) {
  return {source.trained_tokens(row), source.length(row), source.first_trained(row)};
}

void add(Denominators& sums, const Loss& loss, const RowCounts& row) {
  sums.loss += loss.count(row);
  sums.first_trained += row.first_trained;
}

/// Adds what the loss reads besides the rows.
Batch completed(Batch batch, const Loss& loss, const std::function<Denominators()>& denominators) {
  if (loss.averages_tokens() && batch.ids.size(0) > 0) {
    const Denominators step = denominators();
    batch.named[token_share_name] =
        at::full({batch.ids.size(0), 1}, step.loss / double(std::max<std::int64_t>(1, step.first_trained)), at::kFloat);
  }
  return batch;
}

void require_needs(const Loss& loss, const RowSource& source) {
  const std::vector<std::string> names = source.named_tensors();
  for (const std::string& need : loss.needs())
    if (std::ranges::find(names, need) == names.end())
      throw InputError(text("the loss ", loss.name(), " needs \"", need,
                            "\" of every row, and the data have none: ", source.describe()));
}

}  // namespace

std::int64_t BatchLength::of(std::int64_t longest) const {
  return std::max(longest, std::min((longest + multiple - 1) / multiple * multiple, most));
}

Batch make_batch(const std::vector<Row>& rows, std::int64_t empty_length, const BatchLength& length) {
  std::int64_t longest = rows.empty() ? empty_length : 1;
  bool packed = false, ragged = false;
  for (const Row& row : rows) {
    ZERO_CHECK(row.ids.size() == row.targets.size() && row.positions.size() == row.documents.size(),
               "a row's parts differ in length");
    longest = std::max(longest, static_cast<std::int64_t>(row.ids.size()));
    packed = packed || !row.documents.empty();
  }
  longest = length.of(longest);
  for (const Row& row : rows) ragged = ragged || static_cast<std::int64_t>(row.ids.size()) < longest;
  Batch batch;
  batch.ids = stack<std::int64_t>(rows, longest, &Row::ids, filling_id, 0);
  batch.targets = stack<std::int64_t>(rows, longest, &Row::targets, ignored_target, 0);
  if (packed || ragged) batch.positions = stack<std::int64_t>(rows, longest, &Row::positions, 0, 1);
  if (packed) batch.documents = stack<std::int32_t>(rows, longest, &Row::documents, -1, 0);
  add_for_loss(batch, rows, longest);
  return batch;
}

Loader::Loader(std::shared_ptr<const RowSource> source, SampleOrder order, LoaderOptions options)
    : source_(std::move(source)), order_(std::move(order)), options_(options) {
  const std::int64_t pass = options_.local_batch_size * options_.ranks;
  if (options_.local_batch_size < 1 || options_.global_batch_size < 1 || options_.global_batch_size % pass != 0)
    throw InputError(text("training.global_batch_size = ", options_.global_batch_size, " must be a multiple of ", pass,
                          " = training.local_batch_size (", options_.local_batch_size, ") x ranks (", options_.ranks,
                          ")"));
  ZERO_CHECK(
      order_.options().rows == source_->size() && order_.options().global_batch_size == options_.global_batch_size,
      "the order is over other rows or steps");
  require_needs(*options_.loss, *source_);
}

std::int64_t Loader::micro_batches() const {
  return options_.global_batch_size / (options_.local_batch_size * options_.ranks);
}

const std::vector<std::int64_t>& Loader::rows_of(std::int64_t step) {
  if (step != step_) {
    rows_ = order_.rows_of_step(step);
    step_ = step;
  }
  return rows_;
}

std::vector<std::int64_t> Loader::rows(std::int64_t step, std::int64_t micro_batch, int rank) {
  ZERO_CHECK(micro_batch >= 0 && micro_batch < micro_batches(),
             text("micro-batch ", micro_batch, " of ", micro_batches()));
  const auto first = rows_of(step).begin() + (micro_batch * options_.ranks + rank) * options_.local_batch_size;
  return {first, first + options_.local_batch_size};
}

Batch Loader::batch(std::int64_t step, std::int64_t micro_batch) {
  std::vector<Row> rows;
  for (const std::int64_t row : this->rows(step, micro_batch, options_.rank)) rows.push_back(source_->row(row));
  return completed(make_batch(rows, 1, options_.length), loss(), [&] { return denominators(step); });
}

Denominators Loader::denominators(std::int64_t step) {
  Denominators sums;
  for (const std::int64_t row : rows_of(step)) add(sums, loss(), counts_of(*source_, row));
  return sums;
}

double Loader::denominator(std::int64_t step) { return denominators(step).loss; }

std::int64_t Loader::trained_tokens(std::int64_t step) {
  std::int64_t sum = 0;
  for (const std::int64_t row : rows_of(step)) sum += source_->trained_tokens(row);
  return sum;
}

std::int64_t Loader::input_tokens(std::int64_t step) {
  std::int64_t sum = 0;
  for (const std::int64_t row : rows_of(step)) sum += source_->length(row);
  return sum;
}

std::int64_t Loader::first_sample(std::int64_t step, std::int64_t micro_batch) const {
  return step * options_.global_batch_size + (micro_batch * options_.ranks + options_.rank) * options_.local_batch_size;
}

ValidationLoader::ValidationLoader(std::shared_ptr<const RowSource> source, int rank, int ranks,
                                   std::int64_t local_batch_size, BatchLength length, const Loss& loss)
    : source_(std::move(source)),
      rank_(rank),
      ranks_(ranks),
      local_batch_size_(local_batch_size),
      length_(length),
      loss_(loss) {
  require_needs(loss_, *source_);
  for (std::int64_t row = 0; row < source_->size(); ++row) {
    const RowCounts counts = counts_of(*source_, row);
    trained_tokens_ += counts.trained_tokens;
    add(denominators_, loss_, counts);
  }
}

std::int64_t ValidationLoader::micro_batches() const {
  const std::int64_t pass = local_batch_size_ * ranks_;
  return (source_->size() + pass - 1) / pass;
}

std::int64_t ValidationLoader::rows_before(std::int64_t micro_batch) const {
  return std::min(micro_batch * local_batch_size_ * ranks_, source_->size());
}

ValidationLoader::Range ValidationLoader::rows_of(std::int64_t micro_batch) const {
  const std::int64_t pass = local_batch_size_ * ranks_, first = micro_batch * pass;
  const std::int64_t count = std::min(pass, source_->size() - first);
  return {first + count * rank_ / ranks_, first + count * (rank_ + 1) / ranks_};
}

Batch ValidationLoader::batch(std::int64_t micro_batch) const {
  const Range range = rows_of(micro_batch);
  std::vector<Row> rows;
  for (std::int64_t row = range.begin; row < range.end; ++row) rows.push_back(source_->row(row));
  const std::int64_t first = micro_batch * local_batch_size_ * ranks_;
  return completed(make_batch(rows, first < source_->size() ? source_->length(first) : 1, length_), loss_,
                   [&] { return denominators_; });
}

}  // namespace zero
