#include "zero/library/include/zero/world.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <atomic>
#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "comm/agreement/agreement.h"
#include "comm/agreement/rank0_scope.h"
#include "comm/object_collectives.h"
#include "comm/world/device_backends.h"
#include "comm/world/device_choice.h"
#include "zero/library/without_gradient.h"
#include "zero/library/world_impl.h"

namespace zero {

namespace {

void claim_program() {
  static std::atomic<bool> claimed = false;
  if (claimed.exchange(true))
    throw InputError(
        "a program has one World: World::from_environment() is called once; pass the world on, copies mean the same");
}

/// Fills in the world of `job`, which must outlive it.
void join(World::Impl& impl, Job& job, const WorldOptions& options) {
  if (!std::getenv("OMP_NUM_THREADS")) at::set_num_threads(job.cores());
  all_or_none(job.control(), [&] {
    impl.device = choose_device({options.device, 1}, job.local_rank(), job.local_size());
  });
  check_same_device_type(impl.device, job.control());
  MpiOptions mpi;
  mpi.deadline = std::chrono::duration<double>(options.deadline_seconds);
  job.configure(mpi);
  impl.job = &job;
  impl.host = &job.communicator();
  impl.control = &job.control();
  impl.local_rank = job.local_rank();
  impl.on_device = make_device_communicator(*impl.host, impl.device, {.deadline = mpi.deadline});
  impl.ranks = impl.on_device ? impl.on_device.get() : impl.host;
}

World start(const JobOptions& job, const WorldOptions& options) {
  claim_program();
  auto impl = std::make_shared<World::Impl>();
  impl->own_job = std::make_unique<Job>(Job::start(job));
  impl->own_job->end_with_uncaught();
  join(*impl, *impl->own_job, options);
  return World(std::move(impl));
}

/// Converts to a type that holds the sum: int64, fp64 for fp64, else fp32.
at::Tensor wide_sum(const World::Impl& impl, const at::Tensor& value, WorldCall call) {
  const at::ScalarType own = value.scalar_type(), wide = at::isIntegralType(own, /*includeBool=*/true) ? at::kLong
                                                         : own == at::kDouble                          ? at::kDouble
                                                                                                       : at::kFloat;
  at::Tensor total = value.detach().to(impl.device, wide, /*non_blocking=*/false, /*copy=*/true).contiguous();
  impl.ranks->all_reduce(total, {}, World::Impl::tag(call));
  return total;
}

}  // namespace

World World::from_environment(const WorldOptions& options) { return start({}, options); }

World World::from_communicator(int communicator, const WorldOptions& options) {
  JobOptions job;
  job.communicator = communicator;
  return start(job, options);
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

World::World(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) { impl_->name_calls(); }

// Indexed by WorldCall.
void World::Impl::name_calls() {
  ZERO_CHECK(!names->find(0), "a world is made of its parts once");
  names->add({"world.barrier()", "world.sum()", "world.mean()", "world.broadcast()", "world.gather_for_metrics()",
              "world.gather()", "the next batch of a loader", "begin() of a loader"});
  host->set_names(names);
  ranks->set_names(names);
}

int World::Impl::name_units(std::vector<std::string> units) {
  if (++models > 1)
    for (std::string& unit : units) unit += text(" of model ", models);
  return names->add(units);
}

void World::Impl::explain_failures(const std::string& explanation) {
  if (job) job->explain_failures(explanation);
}

World world_of(Communicator& ranks, std::shared_ptr<FileCalls> files) {
  auto impl = std::make_shared<World::Impl>();
  if (files) {
    impl->state_folders = std::make_unique<StateFolders>(*files);
    impl->files = std::move(files);
  }
  impl->ranks = impl->host = impl->control = &ranks;
  impl->local_rank = ranks.rank();
  return World(std::move(impl));
}

int World::rank() const { return impl_->host->rank(); }
int World::size() const { return impl_->host->size(); }
int World::local_rank() const { return impl_->local_rank; }
torch::Device World::device() const { return impl_->device; }

void World::barrier() const { impl_->host->barrier(Impl::tag(WorldCall::barrier)); }

void World::manual_seed(std::uint64_t seed) const {
  at::manual_seed(is_main() ? seed : mix_seed(seed, std::uint64_t(rank())));
}

// Uses the communicator with which models gather. If another process makes another call, both are reported at once. On
// the communicator with the long deadline each would wait for the other.
void World::on_main(const std::function<void()>& work) const {
  impl_->ranks->barrier({Phase::on_main});
  on_first(*impl_->control, work);
}

void World::main_first(const std::function<void()>& work) const {
  on_main(work);
  all_or_none(*impl_->control, [&] {
    const Rank0Scope without_the_others;
    if (!is_main()) work();
  });
}

// A complex number is sent as two real ones.
torch::Tensor World::sum(const torch::Tensor& value) const {
  if (value.is_complex()) return at::view_as_complex(sum(at::view_as_real(value.resolve_conj())));
  const at::Tensor sum = wide_sum(*impl_, value, WorldCall::sum).to(value.scalar_type());
  return without_gradient(sum, value, "world.sum()");
}

torch::Tensor World::mean(const torch::Tensor& value) const {
  if (value.is_complex()) return at::view_as_complex(mean(at::view_as_real(value.resolve_conj())));
  const at::Tensor mean = wide_sum(*impl_, value, WorldCall::mean).to(at::kDouble) / double(size());
  return without_gradient(mean.to(at::isFloatingType(value.scalar_type()) ? value.scalar_type() : at::kFloat), value,
                          "world.mean()");
}

torch::Tensor World::broadcast(const torch::Tensor& value) const {
  const at::Tensor shared =
      value.detach().to(impl_->device, value.scalar_type(), /*non_blocking=*/false, /*copy=*/true).contiguous();
  impl_->ranks->broadcast(shared, 0, Impl::tag(WorldCall::broadcast));
  return without_gradient(shared, value, "world.broadcast()");
}

}  // namespace zero
