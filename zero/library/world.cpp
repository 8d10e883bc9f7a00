#include "zero/library/include/zero/world.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <atomic>
#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/agreement/sole_work.h"
#include "comm/object_collectives.h"
#include "comm/world/device_backends.h"
#include "comm/world/device_choice.h"
#include "zero/library/world_impl.h"

namespace zero {

namespace {

void claim_program() {
  static std::atomic<bool> claimed = false;
  if (claimed.exchange(true))
    throw InputError(
        "a program has one World: World::from_environment() is called once; pass the world on, copies mean the same");
}

/// Fills in what `job`, which outlives it, is as a world.
void join(World::Impl& impl, Job& job, const WorldOptions& options) {
  if (!std::getenv("OMP_NUM_THREADS")) at::set_num_threads(job.cores());
  all_or_none(job.control(), [&] {
    impl.device = choose_device({options.device, 1}, job.local_rank(), job.local_size());
  });
  check_same_device_type(impl.device, job.control());
  MpiOptions mpi;
  mpi.deadline = std::chrono::duration<double>(options.deadline_seconds);
  job.configure(mpi);
  impl.host = &job.communicator();
  impl.control = &job.control();
  impl.local_rank = job.local_rank();
  impl.on_device = make_device_communicator(*impl.host, impl.device, {.deadline = mpi.deadline});
  impl.ranks = impl.on_device ? impl.on_device.get() : impl.host;
}

/// In a type that holds the sum: int64, fp64 of fp64, else fp32.
at::Tensor wide_sum(const World::Impl& impl, const at::Tensor& value) {
  const at::ScalarType own = value.scalar_type(), wide = at::isIntegralType(own, /*includeBool=*/true) ? at::kLong
                                                         : own == at::kDouble                          ? at::kDouble
                                                                                                       : at::kFloat;
  at::Tensor total = value.detach().to(impl.device, wide, /*non_blocking=*/false, /*copy=*/true).contiguous();
  impl.ranks->all_reduce(total);
  return total;
}

}  // namespace

World World::from_environment(const WorldOptions& options) {
  claim_program();
  auto impl = std::make_shared<Impl>();
  impl->job = std::make_unique<Job>(Job::start());
  impl->job->end_with_uncaught();
  join(*impl, *impl->job, options);
  return World(std::move(impl));
}

int World::run(const std::function<int(World&)>& program, const WorldOptions& options) {
  return Job::run([&](Job& job) {
    claim_program();
    auto impl = std::make_shared<Impl>();
    join(*impl, job, options);
    World world(std::move(impl));
    return program(world);
  });
}

World world_of(Communicator& ranks) {
  auto impl = std::make_shared<World::Impl>();
  impl->ranks = impl->host = impl->control = &ranks;
  impl->local_rank = ranks.rank();
  return World(std::move(impl));
}

int World::rank() const { return impl_->host->rank(); }
int World::size() const { return impl_->host->size(); }
int World::local_rank() const { return impl_->local_rank; }
torch::Device World::device() const { return impl_->device; }

void World::barrier() const { impl_->host->barrier(); }

// On the ranks by which models gather: where another process comes with another call, both are told of at once. On those
// that work is waited for on, each would wait for the other.
void World::on_main(const std::function<void()>& work) const {
  impl_->ranks->barrier({Phase::on_main});
  on_first(*impl_->control, work);
}

void World::main_first(const std::function<void()>& work) const {
  on_main(work);
  all_or_none(*impl_->control, [&] {
    const SoleWork without_the_others;
    if (!is_main()) work();
  });
}

// Complex numbers pass as two real ones each.
torch::Tensor World::sum(const torch::Tensor& value) const {
  const at::NoGradGuard no_grad;
  if (value.is_complex()) return at::view_as_complex(sum(at::view_as_real(value.resolve_conj())));
  return wide_sum(*impl_, value).to(value.scalar_type());
}

torch::Tensor World::mean(const torch::Tensor& value) const {
  const at::NoGradGuard no_grad;
  if (value.is_complex()) return at::view_as_complex(mean(at::view_as_real(value.resolve_conj())));
  const at::Tensor mean = wide_sum(*impl_, value).to(at::kDouble) / double(size());
  return mean.to(at::isFloatingType(value.scalar_type()) ? value.scalar_type() : at::kFloat);
}

torch::Tensor World::broadcast(const torch::Tensor& value) const {
  const at::NoGradGuard no_grad;
  const at::Tensor shared =
      value.detach().to(impl_->device, value.scalar_type(), /*non_blocking=*/false, /*copy=*/true).contiguous();
  impl_->ranks->broadcast(shared, 0);
  return shared;
}

// Of the shapes only the first dimension may differ; it is filled up for the collective and cut out again.
torch::Tensor World::gather_for_metrics(const torch::Tensor& rows) const {
  const at::NoGradGuard no_grad;
  const at::Tensor mine = rows.dim() == 0 ? rows.detach().view({1}) : rows.detach();
  const std::vector<std::int64_t> counts = all_gather_number(*impl_->host, mine.size(0));
  const std::int64_t most = *std::max_element(counts.begin(), counts.end());
  std::vector<std::int64_t> shape = mine.sizes().vec();
  shape[0] = most;
  const at::TensorOptions options = mine.options().device(impl_->device);
  const at::Tensor padded = at::zeros(shape, options);
  padded.narrow(0, 0, mine.size(0)).copy_(mine);
  shape.insert(shape.begin(), size());
  const at::Tensor all = at::empty(shape, options);
  impl_->ranks->all_gather_into(all.view({-1}), padded.view({-1}));
  std::vector<at::Tensor> parts;
  for (int r = 0; r < size(); ++r) parts.push_back(all[r].narrow(0, 0, counts[std::size_t(r)]));
  return at::cat(parts);
}

}  // namespace zero
