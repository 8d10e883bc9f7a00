// zero_bench optimizer: the host's AdamW, compared with the machine's copy bandwidth and LibTorch's fused
// AdamW, in one run.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "benchmarks/benchmarks.h"
#include "comm/mpi/non_temporal_copy.h"
#include "offload/disk/disk_tier.h"
#include "offload/memory/cpu_allocator.h"
#include "zero/core/kernels/reduce_kernels.h"
#include "zero/core/states/state_shard.h"
#include "zero/optim/optimizer_table.h"
#include "zero/optim/state_storage.h"

#include "base/simd/targets.h"

#include <hwy/targets.h>

namespace zero {
namespace {

struct Options {
  std::int64_t elements = 100'000'000;
  std::vector<int> threads{1, 2};
  int repeats = 7;
  std::string directory;
  bool json = false;
};

struct Row {
  std::string what;
  double bytes_per_element = 0;
  double seconds = 0;
};

double median_seconds(int repeats, const std::function<void()>& run) {
  std::vector<double> seconds;
  run();
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
  return seconds[static_cast<std::size_t>(repeats / 2)];
}

/// Copies one chunk per thread, bypassing the caches if `stream` is set, otherwise by memcpy. Which one is faster
/// depends on the machine.
void copy_in_parallel(const at::Tensor& to, const at::Tensor& from, bool stream) {
  const std::int64_t chunks = at::get_num_threads(), lines = static_cast<std::int64_t>(from.nbytes()) / 64;
  at::parallel_for(0, chunks, 1, [&](std::int64_t first, std::int64_t last) {
    const std::int64_t begin = lines / chunks * first * 64, end = (last == chunks ? lines : lines / chunks * last) * 64;
    auto* out = static_cast<std::byte*>(to.data_ptr()) + begin;
    const auto* in = static_cast<const std::byte*>(from.const_data_ptr()) + begin;
    const auto bytes = static_cast<std::size_t>(end - begin);
    if (stream)
      stream_copy(out, in, bytes);
    else
      std::memcpy(out, in, bytes);
  });
}

/// The states of one tensor as they are stored. Master weights are in fp32, or only their remainder is stored.
StateShard stored(const Optimizer& optimizer, std::int64_t n, const StateStorage& storage) {
  std::vector<StateSpec> specs = stored_states(optimizer, at::kFloat, storage);
  specs.insert(specs.begin(), storage.split_master ? StateSpec{"remainder", at::kShort} : StateSpec{"master"});
  StateTensor tensor;
  tensor.rule.weight_decay = 0.1;
  return {optimizer,
          StateLayout(FlatLayout({{{"weight", {n}}}}, 1), {tensor}, 1),
          {0, n},
          specs,
          [&](std::int64_t elements) { return std::make_unique<ResidentStateStore>(elements, specs); },
          at::kCPU};
}

std::vector<Row> measure(const Options& options) {
  const std::int64_t n = options.elements;
  const at::Tensor master = at::full({n}, 0.5f), m = at::full({n}, 1e-3f), v = at::full({n}, 1e-6f);
  const at::Tensor gradient = at::full({n}, 1e-3f);
  const at::Tensor gradient_16 = gradient.to(at::kBFloat16), weights_16 = master.to(at::kBFloat16);
  const auto adamw = optimizer_row("adamw").make({});
  const UpdateContext context{{{.lr = 1e-5, .weight_decay = 0.01, .beta2 = 0.999}, 1, 10}};
  std::vector<Row> rows;
  const auto time = [&](const std::string& what, double bytes, const std::function<void()>& run) {
    rows.push_back({what, bytes, median_seconds(options.repeats, run)});
  };
  time("copy, the better of two ways", 8, [&] { copy_in_parallel(m, v, true); });
  time("copy by memcpy", 8, [&] { copy_in_parallel(m, v, false); });
  if (rows[1].seconds < rows[0].seconds) rows[0].seconds = rows[1].seconds;
  rows.pop_back();
  time("pass over one array in place", 8, [&] { m.mul_(1.0f); });
  m.fill_(1e-3f);
  time("AdamW fp32", 28, [&] { adamw->update({master, {m, v}, gradient, {}}, context); });
  time("AdamW bf16 gradient and weights", 28, [&] {
    adamw->update({master, {m, v}, gradient_16, weights_16}, context);
  });
  for (const auto& [what, bytes, storage] :
       {std::tuple("AdamW bf16, states in bf16", 20.0, StateStorage{.bf16_states = true}),
        std::tuple("AdamW bf16, split masters", 26.0, StateStorage{.split_master = true}),
        std::tuple("AdamW bf16, both", 18.0, StateStorage{.bf16_states = true, .split_master = true})}) {
    StateShard shard = stored(*adamw, n, storage);
    time(what, bytes, [&, &shard = shard] { shard.update(context, weights_16, gradient_16); });
  }
  std::vector<at::Tensor> ps{master}, gs{gradient}, ms{m}, vs{v}, steps{at::full({}, 10.0f)};
  time("LibTorch fused AdamW fp32", 28,
       [&] { at::_fused_adamw_(ps, gs, ms, vs, {}, steps, 1e-5, 0.9, 0.999, 0.01, 1e-8, false, false); });
  time("sum of squares fp32", 4, [&] { sum_of_squares(gradient); });
  time("pack bf16 into fp32, adding", 10, [&] { pack(gradient, gradient_16, true); });
  if (!options.directory.empty()) {
    DiskTierOptions tier_options;
    tier_options.directory = options.directory;
    const auto tier = DiskTier::create(tier_options);
    const auto store = tier->make_store("bench", n, {{"master"}, {"exp_avg"}, {"exp_avg_sq"}});
    time("AdamW, states on disk", 28, [&] {
      store->for_each_chunk(StateAccess::read_write, [&](const StateChunk& chunk) {
        const std::int64_t count = chunk.end - chunk.begin;
        const auto state = [&](int s) { return at::from_blob(chunk.states[std::size_t(s)], {count}, at::kFloat); };
        adamw->update({state(0),
                       {state(1), state(2)},
                       gradient_16.narrow(0, chunk.begin, count),
                       weights_16.narrow(0, chunk.begin, count)},
                      context);
      });
    });
  }
  return rows;
}

void print(const Options& options, int threads, const std::vector<Row>& rows) {
  const auto n = static_cast<double>(options.elements);
  const double copy = rows.front().bytes_per_element * n / rows.front().seconds;
  for (const Row& row : rows) {
    const double speed = row.bytes_per_element * n / row.seconds;
    if (options.json) {
      const nlohmann::json line{{"version", 1},
                                {"benchmark", "optimizer"},
                                {"what", row.what},
                                {"threads", threads},
                                {"elements", options.elements},
                                {"elements_per_second", n / row.seconds},
                                {"bytes_per_element", row.bytes_per_element},
                                {"bytes_per_second", speed},
                                {"part_of_copy", speed / copy}};
      std::puts(line.dump().c_str());
    } else {
      std::printf("%7d  %-32s %12.0f %8.0f %8.1f %8.0f %%\n", threads, row.what.c_str(), n / row.seconds / 1e6,
                  row.bytes_per_element, speed / 1e9, 100 * speed / copy);
    }
  }
}

}  // namespace

int bench_optimizer(int argc, char** argv) {
  Options options;
  CLI::App app("AdamW on host memory: elements per second, and its bytes as a part of the copy bandwidth",
               "zero_bench optimizer");
  app.add_option("--elements", options.elements, "elements of the shard")->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads, "numbers of threads")->delimiter(',');
  app.add_option("--repeats", options.repeats, "the median of so many runs")->check(CLI::PositiveNumber);
  app.add_option("--directory", options.directory,
                 "also with the states in files there (24 bytes of disk traffic per element)");
  app.add_flag("--json", options.json, "JSON lines");
  if (const auto code = parse(app, argc, argv)) return *code;
  CpuAllocator allocator;
  allocator.install();
  if (!options.json) {
    std::printf("%lld elements, kernel %s\n", static_cast<long long>(options.elements),
                hwy::TargetName(hwy::SupportedTargets() & -hwy::SupportedTargets()));
    std::printf("threads  %-32s %12s %8s %8s %10s\n", "", "10^6 el/s", "bytes/el", "GB/s", "of copy");
  }
  for (const int threads : options.threads) {
    at::set_num_threads(threads);
    print(options, threads, measure(options));
  }
  return 0;
}

}  // namespace zero
