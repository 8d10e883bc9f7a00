// zero_bench step --device cuda: tokens per second, memory, exposed communication and model FLOP utilisation of a step
// on GPUs.
#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "benchmarks/benchmarks.h"
#include "benchmarks/captured_work.h"
#include "comm/stream.h"
#include "comm/world/device_backends.h"
#include "comm/world/device_choice.h"
#include "comm/world/job.h"
#include "models/families/families.h"
#include "models/initial_weights.h"
#include "models/model.h"
#include "models/ops/cuda/device_setting.h"
#include "zero/core/chain.h"
#include "zero/core/engine.h"

namespace zero {
namespace {

struct Options {
  std::string device = "cuda";
  std::string preset = "llama-110m";
  std::string precision = "bf16";
  std::vector<std::int64_t> local_batches{4};
  std::int64_t seq = 2048;
  int stage = 3;
  int steps = 20;
  int warmup = 5;
  int recompute_every = 0;
  bool keep = false;
  int ranks_per_gpu = 1;
  double peak_tflops = 989;  // in the data sheet: H100 and H200 in bf16 without sparsity
  bool deterministic = false;
  bool forbid_waiting = false;
  bool graph = false;
  bool json = false;
  std::int64_t matmul = 8192;
};

/// Ranks without collectives, to measure how long a step would take if communication were free. Results are worthless.
class FreeCommunicator final : public Communicator, private CollectiveMemory {
 public:
  FreeCommunicator(Communicator& like, at::Device device) : Communicator(like.rank(), like.size()), device_(device) {}

  CollectiveMemory& memory() override { return *this; }
  void poll() override {}
  FailureHandling& failures() override { return failures_; }

 private:
  /// Zeros, because nothing is gathered here and results must be finite.
  at::Tensor allocate(std::int64_t numel, at::ScalarType type) override {
    return at::zeros({numel}, at::TensorOptions().dtype(type).device(device_));
  }
  void reserve(const std::vector<std::int64_t>&, std::int64_t) override {}
  std::int64_t own_device_bytes() const override { return 0; }

  void do_all_gather(const at::Tensor&, const at::Tensor&, const CallRecord&) override {}
  void do_reduce_scatter(const at::Tensor& shard, const at::Tensor&, ReduceOptions, const CallRecord&) override {
    shard.zero_();
  }
  void do_all_reduce(const at::Tensor&, ReduceOptions, const CallRecord&) override {}
  void do_broadcast(const at::Tensor&, int, const CallRecord&) override {}
  void do_all_to_all(const at::Tensor&, const std::vector<std::int64_t>&, const at::Tensor&,
                     const std::vector<std::int64_t>&, const CallRecord&) override {}
  void do_send(const at::Tensor&, int, const CallRecord&) override {}
  void do_recv(const at::Tensor&, int, const CallRecord&) override {}
  void do_settle(const CallRecord&) override {}
  void do_barrier(const CallRecord&) override {}
  std::unique_ptr<Communicator> do_split(const std::vector<int>&, const CallRecord&) override {
    return std::make_unique<FreeCommunicator>(*this, device_);
  }

  at::Device device_;
  SynchronousFailures failures_;
};

/// FLOP of one token, forward and backward, as torchtitan counts them; with `causal`, attention at half.
double flop_per_token(const Model& model, std::int64_t seq, bool causal) {
  const ModelConfig& c = model.config;
  const double embedding = c.tie_word_embeddings ? 0 : double(c.vocab_size) * double(c.hidden_size);
  return 6 * (double(model.numel()) - embedding) + (causal ? 6.0 : 12.0) * double(c.num_hidden_layers) *
                                                       double(c.num_attention_heads) * double(c.head_dim) * double(seq);
}

void wait_for(at::Device device) {
  Event issued(device);
  issued.set();
  issued.wait_on_host();
}

template <class Work>
double seconds_of(at::Device device, const Work& work) {
  wait_for(device);
  const auto begin = std::chrono::steady_clock::now();
  work();
  wait_for(device);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// TFLOP/s of a product of two random n x n matrices.
double matmul_rate(std::int64_t n, at::Device device, at::ScalarType type) {
  const at::TensorOptions options = at::TensorOptions().dtype(type).device(device);
  const at::Tensor a = at::empty({n, n}, options).uniform_(-1, 1), b = at::empty({n, n}, options).uniform_(-1, 1);
  at::Tensor c = at::mm(a, b);
  std::vector<double> rates;
  for (int i = 0; i < 12; ++i)
    rates.push_back(2.0 * double(n) * double(n) * double(n) / seconds_of(device, [&] { at::mm_out(c, a, b); }) / 1e12);
  std::nth_element(rates.begin(), rates.begin() + 6, rates.end());
  return rates[6];
}

struct Measured {
  double median = 0, exposed = 0;  // seconds of a step
  double loss = 0;
  std::int64_t peak_bytes = 0;
};

class DeviceRun {
 public:
  DeviceRun(const Options& options, std::int64_t local_batch, Communicator& host, Communicator& communicator,
            at::Device device)
      : options_(options),
        local_batch_(local_batch),
        device_(device),
        model_(make_model(preset_config(options.preset))) {
    EngineOptions engine;
    engine.plan = ShardPlan::for_stage(options.stage);
    engine.precision.compute = engine.precision.gradient = options.precision == "bf16" ? at::kBFloat16 : at::kFloat;
    engine.recompute_every = options.recompute_every;
    engine.keep_inputs = options.keep;
    engine.fuse_accumulation = !options.deterministic;
    engine.device = device;
    engine.overlap = communicator.size() > 1;
    at::getDeviceAllocator(device.type())->resetPeakStats(device.index());
    mesh_.emplace(communicator, MeshShape{.shard = communicator.size()}, &host);
    engine_ = std::make_unique<Engine>(chain_of(model_), *mesh_, engine);
    RandomWeights weights(model_, 0);
    engine_->load(weights);
    const at::Tensor tokens =
        (at::arange(local_batch * (options.seq + 1), at::kLong) * 2654435761 + communicator.rank())
            .remainder(509)
            .view({local_batch, -1});
    batch_.ids = tokens.narrow(1, 0, options.seq).contiguous().to(device);
    batch_.targets = tokens.narrow(1, 1, options.seq).contiguous().to(device);
  }

  /// Median of steps in runs of five, so that the host runs ahead as in training.
  double median_step() {
    warm_up();
    if (options_.forbid_waiting) {
      forbid_waiting(true);
      step();
      forbid_waiting(false);
    }
    return median_of([&] { step(); });
  }

  /// The same with the step as a CUDA graph. Throws Error when it cannot be recorded.
  double median_replay() {
    warm_up();
    wait_for(device_);
    CapturedWork captured([&] { step(false); });
    return median_of([&] { captured.replay(); });
  }

  /// The loss of one more step.
  double loss() {
    step();
    return pending_->wait().loss_sum() / double(local_batch_ * options_.seq);
  }
  const Engine& engine() const { return *engine_; }

 private:
  void warm_up() {
    for (int i = 0; i < options_.warmup; ++i) step();
  }

  template <class Work>
  double median_of(const Work& work) {
    std::vector<double> all;
    for (int i = 0; i < std::max(3, options_.steps / 5); ++i)
      all.push_back(seconds_of(device_,
                               [&] {
                                 for (int k = 0; k < 5; ++k) work();
                               }) /
                    5);
    std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
    return all[all.size() / 2];
  }

  void step(bool reports = true) {
    ForwardContext context;
    context.batch = &batch_;
    context.training = true;
    ChainPass pass(engine_->chain_run(), context, {});
    pass.backward(1.0 / double(local_batch_ * options_.seq * mesh_->size(axes::tokens)));
    pending_.emplace(engine_->update({1e-4, 1.0, 1.0, reports}, pass.result().detach()));
  }

  const Options& options_;
  std::int64_t local_batch_;
  at::Device device_;
  Model model_;
  std::optional<Mesh> mesh_;
  std::unique_ptr<Engine> engine_;
  Batch batch_;
  std::optional<PendingStepResult> pending_;
};

void print(const Options& options, std::int64_t local_batch, int ranks, const Measured& m, double matmul) {
  const Model model = make_model(preset_config(options.preset));
  const double tokens = double(local_batch * options.seq) / m.median;  // per GPU
  const double full = flop_per_token(model, options.seq, false) * tokens / 1e12,
               causal = flop_per_token(model, options.seq, true) * tokens / 1e12;
  if (options.json) {
    std::puts(nlohmann::json{{"version", 1},
                             {"benchmark", "device_step"},
                             {"engine", "zero"},
                             {"model", options.preset},
                             {"dtype", options.precision},
                             {"stage", options.stage},
                             {"world", ranks},
                             {"seq", options.seq},
                             {"batch", local_batch},
                             {"median_step_s", m.median},
                             {"tokens_per_s_per_gpu", tokens},
                             {"peak_bytes", m.peak_bytes},
                             {"exposed_s", m.exposed},
                             {"mfu", full / options.peak_tflops},
                             {"mfu_causal", causal / options.peak_tflops},
                             {"matmul_tflops", matmul},
                             {"loss", m.loss}}
                  .dump()
                  .c_str());
  } else {
    std::printf("%-15s %5d %6lld %9.2f %12.0f %10.2f %10.2f %8.1f%% %8.1f%% %9.0f %8.4f\n", options.preset.c_str(),
                options.stage, (long long)local_batch, m.median * 1e3, tokens, double(m.peak_bytes) / double(1 << 30),
                m.exposed * 1e3, 100 * full / options.peak_tflops, 100 * causal / options.peak_tflops, matmul, m.loss);
  }
  std::fflush(stdout);
}

/// Compares the step as a CUDA graph with the same one issued call by call. A step that cannot be recorded is reported,
/// and is not a failure.
void compare_with_graph(const Options& options, std::int64_t local_batch, Communicator& host,
                        Communicator& communicator, at::Device device, double eager_loss, double eager) {
  nlohmann::json line{
      {"version", 1},       {"benchmark", "device_graph"}, {"model", options.preset}, {"dtype", options.precision},
      {"seq", options.seq}, {"batch", local_batch},        {"median_step_s", eager},  {"loss", eager_loss}};
  std::string words;
  try {
    DeviceRun run(options, local_batch, host, communicator, device);
    const double replayed = run.median_replay(), loss = run.loss();
    line.update({{"median_replay_s", replayed}, {"gain", 1 - replayed / eager}, {"replay_loss", loss}});
    words = text("replayed as a CUDA graph ", replayed * 1e3, " ms for ", eager * 1e3, " ms, gain ",
                 100 * (1 - replayed / eager), " %; loss ", loss, " for ", eager_loss);
  } catch (const std::exception& error) {
    line["failure"] = error.what();
    words = text("no CUDA graph: ", error.what());
  }
  if (options.json)
    std::puts(line.dump().c_str());
  else
    std::printf("%-15s       %6lld %s\n", options.preset.c_str(), (long long)local_batch, words.c_str());
  std::fflush(stdout);
}

void measure(const Options& options, std::int64_t local_batch, Job& job, Communicator& communicator, at::Device device,
             double matmul) {
  Communicator& host = job.communicator();
  Measured measured;
  {
    DeviceRun run(options, local_batch, host, communicator, device);
    measured.median = run.median_step();
    measured.peak_bytes = run.engine().peak_device_bytes();
    measured.loss = run.loss();
  }
  if (job.size() > 1) {
    FreeCommunicator free(communicator, device);
    measured.exposed = measured.median - DeviceRun(options, local_batch, host, free, device).median_step();
  }
  if (job.rank() == 0) print(options, local_batch, job.size(), measured, matmul);
  if (options.graph)
    compare_with_graph(options, local_batch, host, communicator, device, measured.loss, measured.median);
}

int run(const Options& options, Job& job) {
  const c10::Device device = choose_device({options.device, options.ranks_per_gpu}, job.local_rank(), job.local_size());
  if (device.is_cpu()) throw InputError("this benchmark is for GPUs; leave --device away for the CPU");
  const c10::OptionalDeviceGuard guard(device);
  if (options.graph && job.size() > 1) throw InputError("--graph is for one rank");
  const at::ScalarType type = options.precision == "bf16" ? at::kBFloat16 : at::kFloat;
  const std::string line = prepare_device(device.index(), type, options.deterministic);
  Communicator& host = job.communicator();
  const auto communicator = make_device_communicator(host, device, {std::chrono::seconds(120), options.ranks_per_gpu});
  const ComputeStream compute(device);
  const double matmul = matmul_rate(options.matmul, device, type);
  if (job.rank() == 0) {
    log_info(line);
    if (!options.json)
      std::printf("%-15s %5s %6s %9s %12s %10s %10s %9s %9s %9s %8s\n", "model", "stage", "batch", "ms", "tok/s/GPU",
                  "peak GiB", "exposed ms", "MFU", "causal", "mm TF/s", "loss");
  }
  for (const std::int64_t local_batch : options.local_batches) {
    try {
      measure(options, local_batch, job, *communicator, device, matmul);
    } catch (const c10::OutOfMemoryError&) {
      if (job.size() > 1) throw;  // other ranks may be in a collective
      std::printf("%-15s %5d %6lld out of memory\n", options.preset.c_str(), options.stage, (long long)local_batch);
    }
    at::getDeviceAllocator(device.type())->emptyCache();
  }
  return 0;
}

}  // namespace

int bench_device_step(int argc, char** argv) {
  Options options;
  CLI::App app("A training step on GPUs, on synthetic tokens, one rank per GPU. Start it by mpirun for several.",
               "zero_bench step --device cuda");
  app.add_option("--device", options.device)->check(CLI::IsMember({"cuda"}));
  app.add_option("--preset", options.preset, "the model")->capture_default_str();
  app.add_option("--seq", options.seq, "tokens of a sequence")->capture_default_str()->check(CLI::Range(2, 1 << 20));
  app.add_option("--local-batch", options.local_batches, "sequences of a micro-batch, one or several in turn")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--precision", options.precision)->check(CLI::IsMember({"fp32", "bf16"}))->capture_default_str();
  app.add_option("--stages", options.stage, "one stage")->check(CLI::Range(0, 3))->capture_default_str();
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--warmup", options.warmup)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--recompute-every", options.recompute_every);
  app.add_flag("--keep", options.keep, "what norms and activations give is kept for backward");
  app.add_option("--ranks-per-gpu", options.ranks_per_gpu)->check(CLI::Range(1, 2));
  app.add_option("--peak-tflops", options.peak_tflops, "what the utilisation is measured by")->capture_default_str();
  app.add_option("--matmul", options.matmul, "edge of the matrix product that is measured beside it")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--forbid-waiting", options.forbid_waiting,
               "one step in which an operation that waits for the GPU is an error");
  app.add_flag("--graph", options.graph, "beside it the step recorded as a CUDA graph (an experiment; one rank)");
  app.add_flag("--deterministic", options.deterministic);
  app.add_flag("--json", options.json, "JSON lines");
  if (const auto code = parse(app, argc, argv)) return *code;
  return Job::run([&](Job& job) { return run(options, job); });
}

}  // namespace zero
