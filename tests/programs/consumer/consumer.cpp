// Trains a small Llama by the installed library, as another project would: a job, a chain, an engine, a loop. With
// more ranks (mpirun -np 2 consumer) each holds its part of the states.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstdio>

#include "comm/world/job.h"
#include "models/families/families.h"
#include "models/initial_weights.h"
#include "models/model.h"
#include "zero/core/chain.h"
#include "zero/core/engine.h"

#ifndef INTRA_OP_PARALLEL
#error "the package compiles its users without OpenMP: their at::parallel_for would stay on one thread"
#endif

int main() {
  return zero::Job::run([](zero::Job& job) {
    zero::Model model = zero::make_model(zero::preset_config("llama-tiny"));
    zero::EngineOptions options;
    options.plan = zero::ShardPlan::for_stage(3);
    zero::Mesh mesh(job.communicator());
    zero::Engine engine(zero::chain_of(model), mesh, options);
    zero::RandomWeights weights(model, /*seed=*/0);
    engine.load(weights);

    // One sequence a rank: 0, 1, 2 ... of which each is to say the next.
    const at::Tensor ids = at::arange(33, at::kLong).view({1, 33});
    zero::Batch batch;
    batch.ids = ids.slice(1, 0, 32).contiguous();
    batch.targets = ids.slice(1, 1, 33).contiguous();
    zero::ForwardContext context;
    context.batch = &batch;
    context.training = true;
    double first = 0, last = 0;
    for (int step = 0; step < 10; ++step) {
      const auto pass = engine.forward(context, {});
      pass->backward(1.0 / (32.0 * job.size()));
      const at::Tensor loss = pass->result();  // the sum over 32 tokens
      engine.update({.lr = 1e-2}, loss.detach().to(at::kDouble)).wait();
      last = loss.item<double>() / 32;
      if (step == 0) first = last;
    }
    if (job.rank() == 0)
      std::printf("loss %.3f, then %.3f: %s\n", first, last, last < 0.5 * first ? "it learns" : "it does NOT learn");
    return 0;
  });
}
