#pragma once
// Splits batches over processes. There are two ways to get the same rows:
//
//   // Any loader or range: every process reads the whole batch and keeps its rows.
//   for (auto& batch : zero::shard(loader, world))
//   // Every process reads only its own rows.
//   auto batches = zero::make_data_loader(dataset, world, {.batch_size = 64, .shuffle = true});
//
// A loader's batch is the batch of all processes together. Each process gets contiguous rows, split as evenly as
// possible (rows_of_process()), and no sample is repeated or lost. All processes make the same number of iterations, so
// a process may get an empty batch if there are few rows. Training is equivalent to one process with the same loader.
// Both ways are collective: all processes must iterate over their batches together.
//
// A loader added to a zero::Checkpoint continues where it stopped: the next loop over the saved epoch gets the
// remaining batches. A batch counts as done as soon as the loop receives it, so save after the batch's steps.
#include <torch/data/dataloader.h>

#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <zero/batch_rows.h>
#include <zero/safetensors.h>
#include <zero/samplers.h>
#include <zero/world.h>

namespace zero {

namespace detail {

/// Returns true if there is another batch. `read` fetches this process's rows and returns the number of rows of all
/// processes, or nullopt at the end. If it throws on one process, or if the numbers differ, all processes throw.
/// Collective.
bool next_batch(const World& world, const std::function<std::optional<std::int64_t>()>& read);
/// Returns this process's rows of a batch. If it has none and `never_empty` is set, returns the batch's first row.
RowRange taken_rows(const World& world, std::int64_t rows, bool never_empty);
/// Throws unless all processes pass the same value; `what` describes it in the message. Collective.
void agree_on_loader(const World& world, const char* what, std::int64_t value);
/// Runs `draw` with the main process's state of torch's default CPU generator. If a process's own state was equal, the
/// process keeps the advanced state. Otherwise it gets its own state back. Collective.
void draw_as_main(const World& world, const std::function<void()>& draw);
[[noreturn]] void throw_no_epochs();
/// The state of torch's default CPU generator, as bytes.
torch::Tensor random_state();
/// Runs `body` with the generator in this state, then restores it. If it throws on one process, all processes throw.
/// Collective.
void with_random_state(const World& world, const torch::Tensor& state, const std::function<void()>& body);
/// Returns a tensor of a loader's saved state. Throws InputError if the name is missing.
const torch::Tensor& saved_tensor(const NamedTensors& state, const std::string& name);
/// Throws InputError if the saved number with this name differs from `value`.
void check_saved_number(const NamedTensors& state, const std::string& name, std::int64_t value);
[[noreturn]] void throw_shorter_loader(std::int64_t batches);

/// The position of a loop over a loader's batches.
class LoaderPosition {
 public:
  LoaderPosition() = default;
  /// Sets the epoch for the next begin(). If a loaded position is in this epoch, the epoch continues where it stopped.
  void set_epoch(std::int64_t epoch) {
    if (!loaded_ || epoch != epoch_) *this = LoaderPosition();
    epoch_ = epoch;
    named_ = true;
  }
  /// The current epoch; after the epoch's last batch, the next one.
  std::int64_t epoch() const { return epoch_ + (ended_ ? 1 : 0); }
  /// Begins the epoch of the latest set_epoch(), or epoch() if there was none. If a loaded position is in that epoch,
  /// done() returns how much of the epoch is done.
  void begin() {
    const bool goes_on = loaded_ && (named_ || !ended_);
    *this = LoaderPosition(named_ ? epoch_ : epoch(), goes_on ? done_ : 0);
  }
  std::int64_t done() const { return done_; }
  /// The epoch of the last set_epoch(), begin() or load().
  std::int64_t epoch_told() const { return epoch_; }
  void advance(std::int64_t count) { done_ += count; }
  void end() { ended_ = true; }

  NamedTensors state(const std::string& unit) const;
  void load(const NamedTensors& state, const std::string& unit);

 private:
  LoaderPosition(std::int64_t epoch, std::int64_t done) : epoch_(epoch), done_(done) {}

  std::int64_t epoch_ = 0, done_ = 0;
  bool ended_ = false;   // the loop has reached the end
  bool loaded_ = false;  // loaded, and not begun since
  bool named_ = false;   // set_epoch() was called since the load
};

template <typename T>
concept HasEpoch = requires(T& thing, std::int64_t epoch) {
  thing.set_epoch(epoch);
};

/// Sets the epoch of a dataset, or of the dataset inside a MapDataset. Returns false if neither has set_epoch().
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

/// Iterates over the results of `advance()`.
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

/// Returns the loader if it is a range. Otherwise returns the range that it points to, as torch::data::make_data_loader
/// returns a pointer.
template <typename Loader>
auto& range_of(Loader& loader) {
  if constexpr (requires { std::begin(loader); })
    return loader;
  else
    return *loader;
}

}  // namespace detail

struct BatchOptions {
  /// A process without rows gets the batch's first row, and rows().count is 0, so that the row does not count. For
  /// modules that reject empty batches, such as MultiheadAttention.
  bool never_empty = false;
};

/// `Loader`: a range, or a pointer to one; an lvalue is kept by reference.
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

  /// Begins the epoch that set_epoch() chose, or the next one. An epoch that was left early begins again. A loaded
  /// epoch continues: its first batches are read and skipped. Samplers draw from torch's generator in the main
  /// process's state.
  Iterator begin() {
    const std::int64_t done = begin_epoch();
    const auto start = [&] {
      first_.emplace(std::begin(detail::range_of(loader_)));
      last_.emplace(std::end(detail::range_of(loader_)));
    };
    if (done == 0) {
      detail::draw_as_main(world_, [&] {
        draws_ = detail::random_state();
        start();
      });
    } else {
      detail::with_random_state(world_, draws_, [&] {
        start();
        skip_to(done);
      });
    }
    started_ = done > 0;
    return Iterator(this);
  }
  std::default_sentinel_t end() const { return {}; }

  /// Sets the epoch of the next begin(), for the loader and for the samplers and datasets given to shard().
  void set_epoch(std::int64_t epoch) {
    position_.set_epoch(epoch);
    if (!tell_epoch(epoch)) detail::throw_no_epochs();
  }
  /// The current epoch; after the epoch's last batch, the next one. A loop over epochs starts from it.
  std::int64_t epoch() const { return position_.epoch(); }

  /// The loop's position, for zero::Checkpoint. Loading another one does not affect a loop in progress.
  NamedTensors state() const {
    NamedTensors state = position_.state("batches");
    state["draws"] = draws_.defined() ? draws_ : detail::random_state();
    return state;
  }
  void load_state(const NamedTensors& state) {
    position_.load(state, "batches");
    draws_ = detail::saved_tensor(state, "draws");
    tell_epoch(position_.epoch_told());
  }

  /// The number of rows of the current batch over all processes, and the range that belongs to this process.
  std::int64_t global_rows() const { return global_rows_; }
  RowRange rows() const { return rows_; }

  Batch& batch() { return *batch_; }
  bool advance() {
    return detail::next_batch(world_, [this] { return read(); });
  }

 private:
  /// Begins the epoch and returns the number of its batches that are already done.
  std::int64_t begin_epoch() {
    const std::int64_t before = position_.epoch_told();
    position_.begin();
    detail::agree_on_loader(world_, "as its epoch", position_.epoch());
    detail::agree_on_loader(world_, "batches that are done", position_.done());
    if (position_.epoch() != before) tell_epoch(position_.epoch());
    return position_.done();
  }

  /// Returns false if nothing has a set_epoch().
  bool tell_epoch(std::int64_t epoch) {
    for (const auto& set : epochs_) set(epoch);
    if constexpr (detail::HasEpoch<Range>) {
      detail::range_of(loader_).set_epoch(epoch);
      return true;
    }
    return !epochs_.empty();
  }

  /// Reads the first `batches` batches. The caller reads the next batch, so that the batch's draws come from the real
  /// generator.
  void skip_to(std::int64_t batches) {
    for (;; ++*first_) {
      if (*first_ == *last_) detail::throw_shorter_loader(batches);
      if (--batches == 0) return;
    }
  }

  std::optional<std::int64_t> read() {
    if (started_) ++*first_;
    started_ = true;
    batch_.reset();
    if (*first_ == *last_) {
      position_.end();
      return std::nullopt;
    }
    position_.advance(1);
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
  detail::LoaderPosition position_;  // counts batches
  torch::Tensor draws_;              // the generator's state at the start of the epoch
  std::optional<Batch> batch_;
  std::int64_t global_rows_ = 0;
  RowRange rows_;
};

/// Splits the batches of a torch::data loader or any range over the processes. Tensors are moved to the world's device.
/// Every process must pass the same loader, with samples in the same order. Samplers draw the same random numbers on
/// all processes. `epochs`: samplers and datasets, which must outlive the result. The result's set_epoch() calls
/// theirs.
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
  std::int64_t batch_size = 1;  // over all processes
  bool shuffle = false;         // ShuffledSampler's order
  std::uint64_t seed = 0;
  bool drop_last = false;    // drops an incomplete last batch
  int workers = 0;           // prefetching threads, each with a copy of the dataset; 0: none
  bool never_empty = false;  // as in BatchOptions
};

namespace detail {

/// The indices of one process, batch by batch. A process without rows gets the index of the batch's first row.
class RowSampler : public torch::data::samplers::Sampler<> {
 public:
  /// Runs through one epoch in this order, starting at sample `first`.
  RowSampler(std::vector<std::size_t> order, const LoaderOptions& options, int rank, int size, std::size_t first = 0);

  void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  std::optional<std::vector<std::size_t>> next(std::size_t) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  std::vector<std::size_t> order_;
  std::size_t batch_size_;
  bool drop_last_;
  int rank_, size_;
  std::size_t first_, next_;
};

/// Returns the order of an epoch's samples; throws InputError for invalid options.
std::vector<std::size_t> epoch_order(const LoaderOptions& options, std::optional<std::size_t> samples,
                                     std::int64_t epoch);

}  // namespace detail

/// A loader that reads only its own process's rows.
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

  /// Begins the epoch that set_epoch() chose, or the next one. An epoch that was left early begins again. A loaded
  /// epoch continues.
  Iterator begin() {
    position_.begin();
    const std::int64_t epoch = position_.epoch();
    next_ = position_.done();
    detail::agree_on_loader(world_, "as its epoch", epoch);
    detail::agree_on_loader(world_, "samples that are done", next_);
    detail::set_dataset_epoch(dataset_, epoch);
    loader_ = std::make_unique<Loader>(dataset_,
                                       detail::RowSampler(detail::epoch_order(options_, dataset_.size(), epoch),
                                                          options_, world_.rank(), world_.size(), std::size_t(next_)),
                                       torch::data::DataLoaderOptions()
                                           .batch_size(std::size_t(options_.batch_size))
                                           .workers(std::size_t(options_.workers)));
    first_.emplace(loader_->begin());
    started_ = false;
    return Iterator(this);
  }
  std::default_sentinel_t end() const { return {}; }

  /// Sets the epoch of the sample order. Also calls the dataset's set_epoch() if it has one, for its augmentation.
  void set_epoch(std::int64_t epoch) {
    position_.set_epoch(epoch);
    detail::set_dataset_epoch(dataset_, epoch);
  }
  /// The current epoch; after the epoch's last batch, the next one. A loop over epochs starts from it.
  std::int64_t epoch() const { return position_.epoch(); }

  /// The loop's position, for zero::Checkpoint. Loading a position does not affect a loop in progress. A position can
  /// be loaded with another batch size, but only with the same samples in the same order.
  NamedTensors state() const {
    NamedTensors state = position_.state("samples done");
    for (const auto& [name, number] : what_stays()) state[name] = torch::scalar_tensor(number, torch::kLong);
    return state;
  }
  void load_state(const NamedTensors& state) {
    for (const auto& [name, number] : what_stays()) detail::check_saved_number(state, name, number);
    position_.load(state, "samples done");
  }

  /// The number of batches in an epoch, equal on all processes.
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
  std::map<std::string, std::int64_t> what_stays() const {
    return {{"samples", samples_}, {"seed", std::int64_t(options_.seed)}, {"shuffle", options_.shuffle}};
  }

  std::optional<std::int64_t> read() {
    if (started_) ++*first_;
    started_ = true;
    batch_.reset();
    if (*first_ == loader_->end()) {
      position_.end();
      return std::nullopt;
    }
    global_rows_ = std::min(options_.batch_size, samples_ - next_);
    next_ += global_rows_;
    position_.advance(global_rows_);
    rows_ = rows_of_process(global_rows_, world_.rank(), world_.size());
    const RowRange taken{0, detail::taken_rows(world_, global_rows_, options_.never_empty).count};
    batch_.emplace(take_rows(static_cast<const Batch&>(**first_), taken, world_.device()));
    return global_rows_;
  }

  Dataset dataset_;
  World world_;
  LoaderOptions options_;
  std::int64_t samples_ = 0, next_ = 0;
  detail::LoaderPosition position_;  // counts samples
  std::unique_ptr<Loader> loader_;
  std::optional<torch::data::Iterator<Batch>> first_;
  bool started_ = false;
  std::optional<Batch> batch_;
  std::int64_t global_rows_ = 0;
  RowRange rows_;
};

/// Makes a loader for a stateless torch::data dataset of known size. The dataset must already be collated
/// (.map(torch::data::transforms::Stack<>())). Each process reads only its own rows. Collective.
template <typename Dataset>
RowLoader<Dataset> make_data_loader(Dataset dataset, const World& world, const LoaderOptions& options) {
  return {std::move(dataset), world, options};
}

}  // namespace zero
