#include "zero/library/include/zero/loader.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/util/ScopeExit.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <exception>
#include <numeric>

#include "base/error.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "comm/outcome.h"
#include "zero/library/world_impl.h"

namespace zero::detail {
namespace {

constexpr std::int64_t at_end = -1, failed = -2;  // `failed` minus the exit code

std::string told(std::int64_t rows) {
  return rows == at_end ? "no more batches" : "a batch of " + std::to_string(rows) + " rows";
}

// Throws if the ranks' next batches differ, except on a rank that failed itself; `why`: its reason.
void compare(const World& world, std::int64_t mine, const std::string& why) {
  if (world.size() == 1) return;
  const std::vector<std::int64_t> all =
      all_gather_number(*world.impl().host, mine, World::Impl::tag(WorldCall::next_batch));
  const auto first = std::ranges::find_if(all, [](std::int64_t one) { return one <= failed; });
  if (first != all.end()) {
    const std::vector<std::string> reasons = all_gather_texts(*world.impl().host, why);
    if (mine <= failed) return;
    const auto r = std::size_t(first - all.begin());
    throw Error("process " + std::to_string(r) + " could not read its next batch: " + reasons[r],
                ExitCode(failed - *first));
  }
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0])
      throw InputError("the loaders of the processes differ: process 0 has " + told(all[0]) + ", process " +
                       std::to_string(r) + " " + told(all[r]) +
                       "; give every process the whole loader, with the same dataset and batch size: zero::shard "
                       "itself takes each process's rows out of every batch");
}

}  // namespace

bool next_batch(const World& world, const std::function<std::optional<std::int64_t>()>& read) {
  std::optional<std::int64_t> rows;
  std::exception_ptr failure;
  const Outcome outcome = outcome_of([&] {
    try {
      rows = read();
    } catch (...) {
      failure = std::current_exception();
      throw;
    }
  });
  compare(world, outcome.failed ? failed - std::int64_t(outcome.code) : rows.value_or(at_end), outcome.message);
  if (failure) std::rethrow_exception(failure);
  if (!rows) world.impl().explain_failures("");
  return rows.has_value();
}

RowRange taken_rows(const World& world, std::int64_t rows, bool never_empty) {
  RowRange own = rows_of_process(rows, world.rank(), world.size());
  if (never_empty && own.count == 0) own = {0, std::min<std::int64_t>(rows, 1)};
  const bool empty = own.count == 0;
  world.impl().explain_failures(
      empty
          ? "; this process has no row of its batch, which has fewer rows than there are processes: the loader's option "
            "{.never_empty = true} gives it one that counts nothing"
          : "");
  return own;
}

void agree_on_loader(const World& world, const char* what, std::int64_t value) {
  if (world.size() == 1) return;
  const std::vector<std::int64_t> all =
      all_gather_number(*world.impl().host, value, World::Impl::tag(WorldCall::begin_of_loader));
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0])
      throw InputError("the loaders of the processes differ: process 0 has " + std::to_string(all[0]) + " " + what +
                       ", process " + std::to_string(r) + " " + std::to_string(all[r]) +
                       "; give every process the same dataset and options: the loader itself divides the rows");
}

void draw_as_main(const World& world, const std::function<void()>& draw) {
  if (world.size() == 1) return draw();
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  at::Tensor own, after;
  const auto locked = [&](const auto& body) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    body();
  };
  locked([&] { own = generator.get_state(); });
  const at::Tensor main = world.broadcast(own).cpu();
  locked([&] { generator.set_state(main); });
  const auto restored = c10::make_scope_exit([&] {  // also on an exception
    if (!own.equal(main)) locked([&] { generator.set_state(own); });
  });
  draw();
}

torch::Tensor random_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void with_random_state(const World& world, const torch::Tensor& state, const std::function<void()>& body) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const auto set = [&](const at::Tensor& to) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(to.clone());
  };
  const at::Tensor own = random_state();
  all_or_none(*world.impl().host, [&] {
    set(state);
    const auto restored = c10::make_scope_exit([&] { set(own); });
    body();
  });
}

const torch::Tensor& saved_tensor(const NamedTensors& state, const std::string& name) {
  const auto found = state.find(name);
  if (found == state.end()) throw InputError("the loaded state is not that of such a loader: it has no " + name);
  return found->second;
}

void check_saved_number(const NamedTensors& state, const std::string& name, std::int64_t value) {
  const auto saved = saved_tensor(state, name).item<std::int64_t>();
  if (saved != value)
    throw InputError("the loaded state is of a loader with " + name + " = " + std::to_string(saved) +
                     ", and this one has " + name + " = " + std::to_string(value) +
                     ": its epoch would go on with other samples");
}

void throw_shorter_loader(std::int64_t batches) {
  throw InputError("the loaded state is " + std::to_string(batches) +
                   " batches past the end of this loader: give it the loader that it was saved with");
}

NamedTensors LoaderPosition::state(const std::string& unit) const {
  const auto number = [](std::int64_t value) { return at::scalar_tensor(value, at::kLong); };
  return {{"epoch", number(epoch_)}, {unit, number(done_)}, {"ended", number(ended_)}};
}

void LoaderPosition::load(const NamedTensors& state, const std::string& unit) {
  const auto number = [&](const std::string& name) { return saved_tensor(state, name).item<std::int64_t>(); };
  LoaderPosition loaded(number("epoch"), number(unit));
  loaded.ended_ = number("ended") != 0;
  loaded.loaded_ = true;
  *this = loaded;
}

void throw_no_epochs() {
  throw InputError(
      "set_epoch() has no effect: neither the loader nor anything given to zero::shard has epochs; name the "
      "sampler, zero::shard(loader, world, sampler), a zero::ShuffledSampler for one, or leave the call out "
      "(torch's RandomSampler draws a new order by itself)");
}

RowSampler::RowSampler(std::vector<std::size_t> order, const LoaderOptions& options, int rank, int size,
                       std::size_t first)
    : order_(std::move(order)),
      batch_size_(std::size_t(options.batch_size)),
      drop_last_(options.drop_last),
      rank_(rank),
      size_(size),
      first_(first),
      next_(first) {}

void RowSampler::reset(std::optional<std::size_t>) { next_ = first_; }

std::optional<std::vector<std::size_t>> RowSampler::next(std::size_t) {
  const std::size_t end = std::min(order_.size(), next_ + batch_size_);
  if (next_ == end || (drop_last_ && end - next_ < batch_size_)) return std::nullopt;
  const auto batch = order_.begin() + std::ptrdiff_t(next_);
  const RowRange rows = rows_of_process(std::int64_t(end - next_), rank_, size_);
  next_ = end;
  if (rows.count == 0) return std::vector<std::size_t>{*batch};
  return std::vector<std::size_t>(batch + rows.begin, batch + rows.begin + rows.count);
}

void RowSampler::save(torch::serialize::OutputArchive& archive) const {
  archive.write("next", torch::IValue(std::int64_t(next_)));
}

void RowSampler::load(torch::serialize::InputArchive& archive) {
  torch::IValue next;
  archive.read("next", next);
  next_ = std::size_t(next.toInt());
}

std::vector<std::size_t> epoch_order(const LoaderOptions& options, std::optional<std::size_t> samples,
                                     std::int64_t epoch) {
  if (options.batch_size < 1)
    throw InputError("LoaderOptions.batch_size is " + std::to_string(options.batch_size) + ": it is at least 1");
  if (options.workers < 0)
    throw InputError("LoaderOptions.workers is " + std::to_string(options.workers) + ": it is 0 or more");
  if (!samples)
    throw InputError(
        "the dataset does not know its size, which its rows are divided by: give a dataset whose size() has a value, or "
        "pass a loader of it to zero::shard()");
  if (options.shuffle) return shuffled_order(*samples, options.seed, epoch);
  std::vector<std::size_t> order(*samples);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

}  // namespace zero::detail
