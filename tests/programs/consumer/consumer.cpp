// Another project that trains by the installed library, alone or under mpirun: the same numbers either way.
#include <ATen/Parallel.h>
#include <mpi.h>

#include <cstdlib>

#include <zero/sharded.h>

#include "comm/log.h"
#include "models/model.h"

#ifndef INTRA_OP_PARALLEL
#error "the package compiles its users without OpenMP: their at::parallel_for would stay on one thread"
#endif

int train(zero::World& world, int stage) {
  int processes = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  if (processes != world.size()) return 1;
  torch::manual_seed(1);
  Net net;
  net->to(torch::kDouble);
  zero::Sharded<Net> model(net, world, {.stage = stage});
  zero::ShardedOptimizer optimizer = model.optimizer(zero::AdamWOptions{.lr = 3e-2, .weight_decay = 0});

  // Each process takes its rows of a batch of 16: is the product of two numbers positive?
  const torch::Tensor x = torch::randn({16, 2}, torch::kDouble),
                      y = (x.select(1, 0) * x.select(1, 1)).sign().unsqueeze(1);
  const auto rows = torch::arange(world.rank(), 16, world.size());
  double first = 0, last = 0;
  for (int step = 0; step < 200; ++step) {
    const torch::Tensor loss = torch::mse_loss(model->forward(x.index_select(0, rows)), y.index_select(0, rows));
    model.backward(loss, double(rows.numel()));
    optimizer.clip(1.0);
    optimizer.step();
    const torch::Tensor share = loss.detach() * (double(rows.numel()) / 16);
    last = world.sum(share).item<double>();
    if (step == 0) first = last;
  }
  if (world.is_main()) {
    say("first", first);
    say("last", last);
  }
  return last < 0.1 * first ? 0 : 1;
}

int main(int argc, char** argv) {
  const int stage = argc > 1 ? std::atoi(argv[1]) : 3;
  return zero::World::run([&](zero::World& world) { return train(world, stage); });
}
