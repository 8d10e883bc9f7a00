#pragma once
// Batches over processes. Two ways to the same rows:
//
//   for (auto& batch : zero::shard(loader, world))    // any loader or range: every process reads the whole batch and keeps its rows
//   auto batches = zero::make_data_loader(dataset, world, {.batch_size = 64, .shuffle = true});    // reads its rows alone
//
// A batch of the loader is the batch of all processes; each gets contiguous rows of it, as evenly as possible
// (rows_of_process()), so that no sample is there twice and none is lost, and all have as many iterations: where rows are
// few, batches of some have none. What a loop computes is thereby what one process computes with the same loader.
// Both are collective: all processes go through their batches together.
#include <torch/data/dataloader.h>

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <zero/batch_rows.h>
#include <zero/samplers.h>
#include <zero/world.h>

namespace zero {

namespace detail {

/// Whether there is one more batch. `read` brings this process's rows of it, and returns those of all processes; none: the
/// end. Where it throws every process does, and so they do where its numbers differ. Collective.
bool next_batch(const World& world, const std::function<std::optional<std::int64_t>()>& read);
/// What a process takes of a batch of so many rows: its own, or with `never_empty` the first one where it has none.
RowRange taken_rows(const World& world, std::int64_t rows, bool never_empty);
/// Throws unless all processes have the same value of `what`. Collective.
void agree_on_loader(const World& world, const char* what, std::int64_t value);
/// Runs `draw`, which sees the main process's state of torch's default CPU generator. A process whose state was the same
/// keeps what is left of it, another one its own. Collective.
void draw_as_main(const World& world, const std::function<void()>& draw);
[[noreturn]] void throw_no_epochs();

template <typename T>
concept HasEpoch = requires(T& thing, std::int64_t epoch) {
  thing.set_epoch(epoch);
};

/// Sets the epoch of a dataset, or of what a MapDataset stands on. False: nobody listens.
template <typename Dataset>
bool set_dataset_epoch(Dataset& dataset, std::int64_t epoch) {
  if constexpr (HasEpoch<Dataset>) {
    dataset.set_epoch(epoch);
    return true;
  } else if constexpr (requires { dataset.dataset(); }) {
    return set_dataset_epoch(dataset.dataset(), epoch);
  } else {
    return false;
  }
}

/// Iterates over what `advance()` brings.
template <typename Owner>
class BatchIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using difference_type = std::ptrdiff_t;
  using value_type = typename Owner::Batch;
  using pointer = value_type*;
  using reference = value_type&;

  BatchIterator() = default;
  explicit BatchIterator(Owner* owner) : owner_(owner) { ++*this; }
  reference operator*() const { return owner_->batch(); }
  pointer operator->() const { return &owner_->batch(); }
  BatchIterator& operator++() {
    if (!owner_->advance()) owner_ = nullptr;
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const { return owner_ == nullptr; }

 private:
  Owner* owner_ = nullptr;
};

/// The range that a loader is or, as torch::data::make_data_loader gives it, points to.
template <typename Loader>
auto& range_of(Loader& loader) {
  if constexpr (requires { std::begin(loader); })
    return loader;
  else
    return *loader;
}

}  // namespace detail

struct BatchOptions {
  /// A process without a row gets the batch's first one, which counts nothing: rows().count is 0 there. For modules that
  /// refuse a batch of no rows, as MultiheadAttention does.
  bool never_empty = false;
};

/// `Loader`: a range, or a pointer to one; a reference is kept to what was given as one.
template <typename Loader>
class ShardedLoader {
  using Range = std::remove_reference_t<decltype(detail::range_of(std::declval<Loader&>()))>;
  using First = decltype(std::begin(std::declval<Range&>()));
  using Last = decltype(std::end(std::declval<Range&>()));

 public:
  using Batch = std::remove_cvref_t<decltype(*std::declval<First&>())>;
  using Iterator = detail::BatchIterator<ShardedLoader>;

  ShardedLoader(Loader&& loader, const World& world, const BatchOptions& options,
                std::vector<std::function<void(std::int64_t)>> epochs)
      : loader_(std::forward<Loader>(loader)), world_(world), options_(options), epochs_(std::move(epochs)) {}

  /// Begins an epoch. What a sampler draws from torch's generator is drawn as on the main process.
  Iterator begin() {
    detail::agree_on_loader(world_, "as its epoch", epoch_);
    detail::draw_as_main(world_, [&] {
      first_.emplace(std::begin(detail::range_of(loader_)));
      last_.emplace(std::end(detail::range_of(loader_)));
    });
    started_ = false;
    return Iterator(this);
  }
  std::default_sentinel_t end() const { return {}; }

  /// The epoch that the next begin() begins, for the loader and for the samplers and datasets that shard() was given.
  void set_epoch(std::int64_t epoch) {
    epoch_ = epoch;
    bool heard = !epochs_.empty();
    for (const auto& set : epochs_) set(epoch);
    if constexpr (detail::HasEpoch<Range>) {
      detail::range_of(loader_).set_epoch(epoch);
      heard = true;
    }
    if (!heard) detail::throw_no_epochs();
  }

  /// Of the batch under way: the rows of all processes together, and which of them are this one's.
  std::int64_t global_rows() const { return global_rows_; }
  RowRange rows() const { return rows_; }

  Batch& batch() { return *batch_; }
  bool advance() {
    return detail::next_batch(world_, [this] { return read(); });
  }

 private:
  std::optional<std::int64_t> read() {
    if (started_) ++*first_;
    started_ = true;
    batch_.reset();
    if (*first_ == *last_) return std::nullopt;
    const Batch& whole = **first_;
    global_rows_ = row_count(whole);
    rows_ = rows_of_process(global_rows_, world_.rank(), world_.size());
    batch_.emplace(take_rows(whole, detail::taken_rows(world_, global_rows_, options_.never_empty), world_.device()));
    return global_rows_;
  }

  Loader loader_;
  World world_;
  BatchOptions options_;
  std::vector<std::function<void(std::int64_t)>> epochs_;
  std::optional<First> first_;
  std::optional<Last> last_;
  bool started_ = false;
  std::optional<Batch> batch_;
  std::int64_t epoch_ = 0, global_rows_ = 0;
  RowRange rows_;
};

/// The batches of a torch::data loader or of any range, split over the processes, tensors on the world's device. Every
/// process has the same loader: the same samples in the same order (the sampler's draws are taken care of). Samplers and
/// datasets that have a set_epoch() may be named: they outlive the result, whose set_epoch() tells them.
template <typename Loader, typename... Epochs>
ShardedLoader<Loader> shard(Loader&& loader, const World& world, const BatchOptions& options, Epochs&... epochs) {
  return {
      std::forward<Loader>(loader), world, options, {[&epochs](std::int64_t epoch) { epochs.set_epoch(epoch); }...}};
}
template <typename Loader, typename... Epochs>
requires(detail::HasEpoch<Epochs>&&...) ShardedLoader<Loader> shard(Loader&& loader, const World& world,
                                                                    Epochs&... epochs) {
  return shard(std::forward<Loader>(loader), world, BatchOptions(), epochs...);
}

struct LoaderOptions {
  std::int64_t batch_size = 1;  // of all processes together
  bool shuffle = false;         // ShuffledSampler's order
  std::uint64_t seed = 0;
  bool drop_last = false;    // whether a last batch that is not whole is left out
  int workers = 0;           // threads that read ahead, each with a copy of the dataset; 0: none
  bool never_empty = false;  // as BatchOptions
};

namespace detail {

/// The indices of one process, batch by batch; where it has no row the batch's first one stands in.
class RowSampler : public torch::data::samplers::Sampler<> {
 public:
  /// An epoch in this order.
  RowSampler(std::vector<std::size_t> order, const LoaderOptions& options, int rank, int size);

  void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  std::optional<std::vector<std::size_t>> next(std::size_t) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  std::vector<std::size_t> order_;
  std::size_t batch_size_;
  bool drop_last_;
  int rank_, size_;
  std::size_t next_ = 0;
};

/// The order of an epoch; throws InputError for options that make no sense.
std::vector<std::size_t> epoch_order(const LoaderOptions& options, std::optional<std::size_t> samples,
                                     std::int64_t epoch);

}  // namespace detail

/// A loader that reads the rows of its process alone.
template <typename Dataset>
class RowLoader {
  using Loader = torch::data::StatelessDataLoader<Dataset, detail::RowSampler>;

 public:
  using Batch = typename Dataset::BatchType;
  using Iterator = detail::BatchIterator<RowLoader>;

  RowLoader(Dataset dataset, const World& world, const LoaderOptions& options)
      : dataset_(std::move(dataset)), world_(world), options_(options) {
    samples_ = std::int64_t(detail::epoch_order(options_, dataset_.size(), 0).size());
    detail::agree_on_loader(world_, "samples in its dataset", samples_);
    detail::agree_on_loader(world_, "samples in a batch", options_.batch_size);
    detail::agree_on_loader(world_, "as its seed", std::int64_t(options_.seed));
    detail::agree_on_loader(world_, "as its shuffle", options_.shuffle);
    detail::agree_on_loader(world_, "as its drop_last", options_.drop_last);
  }

  /// Begins the epoch that set_epoch() named, 0 without.
  Iterator begin() {
    detail::agree_on_loader(world_, "as its epoch", epoch_);
    loader_ = std::make_unique<Loader>(dataset_,
                                       detail::RowSampler(detail::epoch_order(options_, dataset_.size(), epoch_),
                                                          options_, world_.rank(), world_.size()),
                                       torch::data::DataLoaderOptions()
                                           .batch_size(std::size_t(options_.batch_size))
                                           .workers(std::size_t(options_.workers)));
    first_.emplace(loader_->begin());
    position_ = 0;
    started_ = false;
    return Iterator(this);
  }
  std::default_sentinel_t end() const { return {}; }

  /// For the order and, where it has a set_epoch(), for the dataset (its augmentation).
  void set_epoch(std::int64_t epoch) {
    epoch_ = epoch;
    detail::set_dataset_epoch(dataset_, epoch);
  }

  /// Batches of an epoch, the same on every process.
  std::int64_t size() const {
    return (samples_ + (options_.drop_last ? 0 : options_.batch_size - 1)) / options_.batch_size;
  }
  std::int64_t global_rows() const { return global_rows_; }
  RowRange rows() const { return rows_; }

  Batch& batch() { return *batch_; }
  bool advance() {
    return detail::next_batch(world_, [this] { return read(); });
  }

 private:
  std::optional<std::int64_t> read() {
    if (started_) ++*first_;
    started_ = true;
    batch_.reset();
    if (*first_ == loader_->end()) return std::nullopt;
    global_rows_ = std::min(options_.batch_size, samples_ - position_);
    position_ += global_rows_;
    rows_ = rows_of_process(global_rows_, world_.rank(), world_.size());
    const RowRange taken{0, detail::taken_rows(world_, global_rows_, options_.never_empty).count};
    batch_.emplace(take_rows(static_cast<const Batch&>(**first_), taken, world_.device()));
    return global_rows_;
  }

  Dataset dataset_;
  World world_;
  LoaderOptions options_;
  std::int64_t samples_ = 0, epoch_ = 0, position_ = 0;
  std::unique_ptr<Loader> loader_;
  std::optional<torch::data::Iterator<Batch>> first_;
  bool started_ = false;
  std::optional<Batch> batch_;
  std::int64_t global_rows_ = 0;
  RowRange rows_;
};

/// A stateless dataset of torch::data, of known size, collated as it is (.map(torch::data::transforms::Stack<>())).
/// Each process reads the samples of its rows and no others. Collective.
template <typename Dataset>
RowLoader<Dataset> make_data_loader(Dataset dataset, const World& world, const LoaderOptions& options) {
  return {std::move(dataset), world, options};
}

}  // namespace zero
