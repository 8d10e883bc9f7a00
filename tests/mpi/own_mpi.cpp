// A program that owns MPI, or a communicator, and trains a step.
// usage: own_mpi KIND STAGE      single, funneled, serialized, multiple: the level that MPI is started with;
//   halves: two worlds, of the even and of the odd ranks; thread, serialized-thread: a World that another thread makes;
//   self: each process is a world; throw, halves-throw: nobody catches an error; null, unstarted, ended: refusals
#include <mpi.h>
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include <zero/sharded.h>

namespace {

struct NetImpl : torch::nn::Module {
  NetImpl() : first(4, 4), second(4, 2) {
    register_module("first", first);
    register_module("second", second);
  }
  torch::Tensor forward(const torch::Tensor& x) { return second(torch::tanh(first(x))); }
  torch::nn::Linear first, second;
};
TORCH_MODULE(Net);

int level_of(const std::string& kind) {
  if (kind.starts_with("funneled")) return MPI_THREAD_FUNNELED;
  if (kind.starts_with("serialized")) return MPI_THREAD_SERIALIZED;
  return kind.starts_with("multiple") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
}

zero::World make_world(const std::string& kind) {
  const zero::WorldOptions options{.device = "cpu", .deadline_seconds = 20};
  if (kind == "null") return zero::World::from_communicator(MPI_Comm_c2f(MPI_COMM_NULL), options);
  if (kind == "self") return zero::World::from_communicator(MPI_Comm_c2f(MPI_COMM_SELF), options);
  if (!kind.starts_with("halves")) return zero::World::from_environment(options);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
  zero::World world = zero::World::from_communicator(MPI_Comm_c2f(half), options);
  MPI_Comm_free(&half);  // the world has its own
  return world;
}

/// The norm of the first step's gradient, on every world the same.
double train(const zero::World& world, const std::string& kind, int stage) {
  torch::manual_seed(1);
  zero::Sharded<Net> model(Net(), world, {.stage = stage});
  auto optimizer = model.optimizer(zero::AdamWOptions());
  const torch::Tensor x = torch::arange(4.0F).view({1, 4});
  model.backward(model(x).sum());
  if (kind.ends_with("throw") && world.rank() == world.size() - 1) throw std::runtime_error("it broke");
  return optimizer.step().grad_norm;
}

void tell(const zero::World& world, double norm) {
  std::printf("process %d of %d: norm %.6f\n", world.rank(), world.size(), norm);
  std::fflush(stdout);
}

void run(const std::string& kind, int stage) {
  const zero::World world = make_world(kind);
  tell(world, train(world, kind, stage));
}

int refused(const std::exception& error) {
  std::fprintf(stderr, "refused: %s\n", error.what());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argv[1];
  const int stage = std::atoi(argv[2]);
  int provided = 0;
  if (kind == "single" || kind == "thread")
    MPI_Init(&argc, &argv);
  else if (kind != "unstarted")
    MPI_Init_thread(&argc, &argv, level_of(kind), &provided);
  if (kind == "ended") MPI_Finalize();
  if (kind == "null" || kind == "ended" || kind == "unstarted" || kind == "thread") {
    int code = 1;  // unless it is refused
    const auto attempt = [&] {
      try {
        kind == "unstarted" ? (void)zero::World::from_communicator(0) : (void)make_world(kind);
      } catch (const std::runtime_error& error) {
        code = refused(error);
      }
    };
    kind == "thread" ? std::thread(attempt).join() : attempt();
    if (kind == "null" || kind == "thread") MPI_Finalize();
    return code;
  }
  if (kind == "serialized-thread")
    std::thread([&] { run(kind, stage); }).join();
  else
    run(kind, stage);
  int over = 0, ranks = 0, one = 1, sum = 0;
  MPI_Finalized(&over);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);  // MPI goes on
  const bool right = !over && sum == ranks;
  MPI_Finalize();
  return right ? 0 : 1;
}
