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
//
// A loader added to a zero::Checkpoint goes on where it stood: the next loop over the saved epoch has the batches that were
// left. A batch counts as done once the loop has it, so save after the steps of the batch.
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
/// Of torch's default CPU generator, as bytes.
torch::Tensor random_state();
/// Runs `body` with the generator in this state, and leaves it as it was. Where it throws on one process, it does on all.
/// Collective.
void with_random_state(const World& world, const torch::Tensor& state, const std::function<void()>& body);
/// A tensor of a loader's saved state. InputError where it has none of this name.
const torch::Tensor& saved_tensor(const NamedTensors& state, const std::string& name);
/// InputError where the number of this name is another one.
void check_saved_number(const NamedTensors& state, const std::string& name, std::int64_t value);
[[noreturn]] void throw_shorter_loader(std::int64_t batches);

/// Where a loop over a loader's batches stands.
class LoaderPosition {
 public:
  LoaderPosition() = default;
  /// The epoch that the next begin() begins. The epoch of a position that was loaded goes on where it stood.
  void set_epoch(std::int64_t epoch) {
    if (!loaded_ || epoch != epoch_) *this = LoaderPosition();
    epoch_ = epoch;
    named_ = true;
  }
  /// The epoch under way; after its last batch the next one.
  std::int64_t epoch() const { return epoch_ + (ended_ ? 1 : 0); }
  /// Begins the epoch that set_epoch() has named since, or else epoch(). Of a loaded one done() is done.
  void begin() {
    const bool goes_on = loaded_ && (named_ || !ended_);
    *this = LoaderPosition(named_ ? epoch_ : epoch(), goes_on ? done_ : 0);
  }
  std::int64_t done() const { return done_; }
  /// As the last set_epoch(), begin() or load() has it.
  std::int64_t epoch_told() const { return epoch_; }
  void advance(std::int64_t count) { done_ += count; }
  void end() { ended_ = true; }

  NamedTensors state(const std::string& unit) const;
  void load(const NamedTensors& state, const std::string& unit);

 private:
  LoaderPosition(std::int64_t epoch, std::int64_t done) : epoch_(epoch), done_(done) {}

  std::int64_t epoch_ = 0, done_ = 0;
  bool ended_ = false;   // the loop has seen the end
  bool loaded_ = false;  // and not begun since
  bool named_ = false;   // by set_epoch() since it was loaded
};

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

  /// Begins the epoch that set_epoch() named, or else the next one; one that was left early begins again. Goes on with one
  /// that was loaded, whose first batches are read and left out. What a sampler draws from torch's generator is drawn as
  /// on the main process.
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

  /// The epoch that the next begin() begins, for the loader and for the samplers and datasets that shard() was given.
  void set_epoch(std::int64_t epoch) {
    position_.set_epoch(epoch);
    if (!tell_epoch(epoch)) detail::throw_no_epochs();
  }
  /// The epoch under way; after its last batch the next one: where a loop over epochs goes on.
  std::int64_t epoch() const { return position_.epoch(); }

  /// Where the loop stands, for zero::Checkpoint; a loop that is under way goes on as it is where another one is loaded.
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

  /// Of the batch under way: the rows of all processes together, and which of them are this one's.
  std::int64_t global_rows() const { return global_rows_; }
  RowRange rows() const { return rows_; }

  Batch& batch() { return *batch_; }
  bool advance() {
    return detail::next_batch(world_, [this] { return read(); });
  }

 private:
  /// Returns the batches of it that are done.
  std::int64_t begin_epoch() {
    const std::int64_t before = position_.epoch_told();
    position_.begin();
    detail::agree_on_loader(world_, "as its epoch", position_.epoch());
    detail::agree_on_loader(world_, "batches that are done", position_.done());
    if (position_.epoch() != before) tell_epoch(position_.epoch());
    return position_.done();
  }

  /// False: nobody listens.
  bool tell_epoch(std::int64_t epoch) {
    for (const auto& set : epochs_) set(epoch);
    if constexpr (detail::HasEpoch<Range>) {
      detail::range_of(loader_).set_epoch(epoch);
      return true;
    }
    return !epochs_.empty();
  }

  /// Stands on the last of the epoch's first `batches`. The next one is read outside: what it draws is of the generator.
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
  detail::LoaderPosition position_;  // in batches
  torch::Tensor draws_;              // the generator's state as the epoch began
  std::optional<Batch> batch_;
  std::int64_t global_rows_ = 0;
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
  /// An epoch in this order, from sample `first` on.
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

  /// Begins the epoch that set_epoch() named, or else the next one; one that was left early begins again. Goes on with one
  /// that was loaded.
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

  /// For the order and, where it has a set_epoch(), for the dataset (its augmentation).
  void set_epoch(std::int64_t epoch) {
    position_.set_epoch(epoch);
    detail::set_dataset_epoch(dataset_, epoch);
  }
  /// The epoch under way; after its last batch the next one: where a loop over epochs goes on.
  std::int64_t epoch() const { return position_.epoch(); }

  /// Where the loop stands, for zero::Checkpoint; a loop that is under way goes on as it is where another one is loaded. The
  /// size of batches may differ where it is loaded, the samples and their order may not.
  NamedTensors state() const {
    NamedTensors state = position_.state("samples done");
    for (const auto& [name, number] : what_stays()) state[name] = torch::scalar_tensor(number, torch::kLong);
    return state;
  }
  void load_state(const NamedTensors& state) {
    for (const auto& [name, number] : what_stays()) detail::check_saved_number(state, name, number);
    position_.load(state, "samples done");
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
  detail::LoaderPosition position_;  // in samples
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
