// Times of the collectives over message sizes, as nccl-tests count them. The size is that of the full vector. Algorithm
// bandwidth is size / time. Bus bandwidth scales it by the part that any algorithm must move: (n-1)/n for all_gather,
// reduce_scatter and all_to_all (of equal counts), 2(n-1)/n for all_reduce.
#include <ATen/Functions.h>
#include <c10/core/DeviceGuard.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/benchmarks.h"
#include "comm/stream.h"
#include "comm/world/device_backends.h"
#include "comm/world/device_choice.h"
#include "comm/world/job.h"

namespace zero {
namespace {

struct Arguments {
  std::int64_t smallest = 4 << 10;  // bytes
  std::int64_t largest = 64 << 20;
  std::string type = "fp32";
  std::string shared_memory = "auto";
  int slots = MpiOptions{}.slots;
  std::size_t slot_bytes = MpiOptions{}.slot_bytes;
  std::string device = "cpu";
  bool json = false;
};

struct Timed {
  const char* name;
  double bus_factor;
  std::function<void()> call;
};

/// Median seconds of a call on the slowest rank; every repeat begins together.
double seconds_of(Communicator& c, const std::function<void()>& call, int repeats, at::Device device) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> all;
  Event done(device);
  for (int i = -2; i < repeats; ++i) {  // two to warm up
    c.barrier();
    const auto start = Clock::now();
    call();
    done.set();
    done.wait_on_host();
    const std::chrono::duration<double> took = Clock::now() - start;
    if (i >= 0) all.push_back(took.count());
  }
  std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
  const at::Tensor medians = at::zeros({c.size()}, at::kDouble), own = medians.narrow(0, c.rank(), 1);
  own.fill_(all[all.size() / 2]);
  c.all_gather_into(medians, own);
  return medians.max().item<double>();
}

void print(const Arguments& arguments, int ranks, const Timed& timed, std::int64_t bytes, double seconds) {
  const double algorithm = bytes / seconds / 1e9, bus = algorithm * timed.bus_factor;
  if (arguments.json)
    std::printf(
        "{\"version\": 1, \"benchmark\": \"collectives\", \"collective\": \"%s\", \"ranks\": %d, \"type\": \"%s\", \"bytes\": %lld, "
        "\"seconds\": %.9g, \"algorithm_gb_per_s\": %.6g, \"bus_gb_per_s\": %.6g}\n",
        timed.name, ranks, arguments.type.c_str(), static_cast<long long>(bytes), seconds, algorithm, bus);
  else
    std::printf("%-15s %5d  %12lld  %12.1f  %10.2f  %10.2f\n", timed.name, ranks, static_cast<long long>(bytes),
                seconds * 1e6, algorithm, bus);
}

int measure(Job& job, const Arguments& arguments) {
  MpiOptions options;
  options.shared_memory = arguments.shared_memory == "off"  ? SharedMemory::off
                          : arguments.shared_memory == "on" ? SharedMemory::on
                                                            : SharedMemory::automatic;
  options.slots = arguments.slots;
  options.slot_bytes = arguments.slot_bytes;
  job.configure(options);
  Communicator& host = job.communicator();
  const at::Device device = choose_device({arguments.device, 1}, job.local_rank(), job.local_size());
  const c10::OptionalDeviceGuard guard(device);
  const ComputeStream stream(device);
  const auto on_device = make_device_communicator(host, device);
  Communicator& c = on_device ? *on_device : host;
  const at::ScalarType type = arguments.type == "bf16" ? at::kBFloat16 : at::kFloat;
  const double share = static_cast<double>(c.size() - 1) / c.size();
  if (c.rank() == 0 && !arguments.json)
    std::printf("%-15s %5s  %12s  %12s  %10s  %10s\n", "collective", "ranks", "bytes", "us", "alg GB/s", "bus GB/s");
  for (std::int64_t bytes = arguments.smallest; bytes <= arguments.largest; bytes *= 4) {
    const std::int64_t element = c10::elementSize(type), n = bytes / element / c.size();
    c.memory().reserve({n * c.size() * element, n * c.size() * element, n * element}, n * c.size() * element);
    const at::Tensor full = c.memory().allocate(n * c.size(), type).zero_(),
                     other = c.memory().allocate(n * c.size(), type).zero_(),
                     shard = c.memory().allocate(n, type).zero_(), own = full.narrow(0, n * c.rank(), n);
    const std::vector<std::int64_t> counts(c.size(), n);
    const std::vector<Timed> all = {
        {"all_gather", share, [&] { c.all_gather_into(full, shard); }},
        {"gather_in_place", share, [&] { c.all_gather_into(full, own); }},
        {"reduce_scatter", share, [&] { c.reduce_scatter(shard, full); }},
        {"all_reduce", 2 * share, [&] { c.all_reduce(full); }},
        {"broadcast", 1, [&] { c.broadcast(full, 0); }},
        {"all_to_all", share, [&] { c.all_to_all(other, counts, full, counts); }},
    };
    for (const Timed& timed : all) {
      const double seconds = seconds_of(host, timed.call, bytes < (1 << 20) ? 200 : 15, device);
      if (c.rank() == 0) print(arguments, c.size(), timed, n * c.size() * element, seconds);
    }
  }
  return 0;
}

}  // namespace

int bench_collectives(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Times of the collectives; start it under mpirun", "zero_bench collectives");
  app.add_option("--min", arguments.smallest, "smallest full vector in bytes")->capture_default_str();
  app.add_option("--max", arguments.largest, "largest full vector in bytes")->capture_default_str();
  app.add_option("--type", arguments.type, "fp32 or bf16")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
  app.add_option("--shared-memory", arguments.shared_memory)
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  app.add_option("--slots", arguments.slots, "of the shared window, per rank")->capture_default_str();
  app.add_option("--slot-bytes", arguments.slot_bytes)->capture_default_str();
  app.add_option("--device", arguments.device)->check(CLI::IsMember({"cpu", "cuda"}))->capture_default_str();
  app.add_flag("--json", arguments.json, "one object per line");
  if (const auto code = parse(app, argc, argv)) return *code;
  return Job::run([&](Job& job) { return measure(job, arguments); });
}

}  // namespace zero
