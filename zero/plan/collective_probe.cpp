#include "zero/plan/collective_probe.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/scratch_folder.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/process/child_process.h"

namespace zero {
namespace {

constexpr std::int64_t small_bytes = 64 << 10, large_bytes = 16 << 20;

const char* const names[collective_calls] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", "send"};

std::string name_of(int call, std::int64_t bytes) { return text("collective ", names[call], " ", bytes); }

/// The bytes that a rank sends in a call on a vector.
double sent(int call, int ranks, double bytes) {
  if (call == int(CollectiveCall::send)) return bytes;
  return bytes * (ranks - 1) / ranks * (call == int(CollectiveCall::all_reduce) ? 2 : 1);
}

double seconds_of(Communicator& ranks, const std::function<void()>& call, int repeats) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> all;
  for (int i = -1; i < repeats; ++i) {
    ranks.barrier();
    const auto begin = Clock::now();
    call();
    if (i >= 0) all.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  // The fastest one: the others waited for a rank that another program kept from running.
  const double fastest = *std::min_element(all.begin(), all.end());
  const at::Tensor times = at::zeros({ranks.size()}, at::kDouble), own = times.narrow(0, ranks.rank(), 1);
  own.fill_(fastest);
  ranks.all_gather_into(times, own);
  return times.max().item<double>();
}

}  // namespace

void probe_collectives(Communicator& ranks, const std::string& path) {
  nlohmann::json found;
  for (const std::int64_t bytes : {small_bytes, large_bytes}) {
    const std::int64_t n = bytes / 2 / ranks.size(), full_bytes = n * ranks.size() * 2;
    ranks.memory().reserve({full_bytes, full_bytes, n * 2}, full_bytes);
    const at::Tensor full = ranks.memory().allocate(n * ranks.size(), at::kBFloat16).zero_(),
                     other = ranks.memory().allocate(n * ranks.size(), at::kBFloat16).zero_(),
                     shard = ranks.memory().allocate(n, at::kBFloat16).zero_();
    const std::vector<std::int64_t> counts(std::size_t(ranks.size()), n);
    const int next = (ranks.rank() + 1) % ranks.size(), last = (ranks.rank() + ranks.size() - 1) % ranks.size();
    const std::function<void()> calls[collective_calls] = {
        [&] { ranks.all_gather_into(full, shard); }, [&] { ranks.reduce_scatter(shard, full); },
        [&] { ranks.all_reduce(full); }, [&] { ranks.all_to_all(other, counts, full, counts); },
        [&] {
          ranks.send(full, next);
          ranks.recv(other, last);
          ranks.settle();
        }};
    for (int call = 0; call < collective_calls; ++call)
      found[name_of(call, bytes)] = seconds_of(ranks, calls[call], bytes == small_bytes ? 60 : 15);
  }
  if (ranks.rank() == 0) {
    std::ofstream file(path);
    file << found.dump() << '\n';
    if (!file.flush()) throw Error(path + ": cannot be written; check the room on its disk");
  }
}

std::string run_probe(const std::string& program, int ranks, Timings& timings) {
  if (ranks < 2) return "one rank";
  if (timings.find(name_of(0, small_bytes)) > 0) return "";
  std::vector<std::string> words{"mpirun", "--bind-to", "none", "--oversubscribe", "-np", std::to_string(ranks)};
  if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  try {
    const ScratchFolder folder("plan");
    const std::string seconds = folder.path() + "/seconds";
    words.insert(words.end(), {program, "--probe", seconds});
    const int code = run_program_to_end(words, {"OMP_NUM_THREADS=1"}, folder.path() + "/log");
    if (code != 0) return text("mpirun ended with exit code ", code);
    const nlohmann::json found = read_json_object(seconds);
    for (const auto& [name, value] : found.items()) timings.put(name, value.get<double>());
    return found.empty() ? "mpirun's ranks wrote no numbers" : "";
  } catch (const StoppedError&) {
    throw;
  } catch (const Error& failed) {
    return failed.what();
  }
}

NodeLinks links_of_node(int ranks, const Timings& timings, double memory_rate, const std::string& why_not) {
  NodeLinks links;
  links.ranks_per_node = ranks;
  for (int call = 0; call < collective_calls; ++call) {
    const double small = timings.find(name_of(call, small_bytes)), large = timings.find(name_of(call, large_bytes));
    LinkLine& line = links.in_node[std::size_t(call)];
    if (small > 0 && large > small) {
      const double few = sent(call, ranks, small_bytes), many = sent(call, ranks, large_bytes);
      line.per_byte = (large - small) / (many - few);
      line.latency = std::max(0.0, small - few * line.per_byte);
      continue;
    }
    const bool sums = call == int(CollectiveCall::reduce_scatter) || call == int(CollectiveCall::all_reduce);
    line = {20e-6, (sums ? 5 : 3) / memory_rate};
  }
  const LinkLine& gather = links.in_node[0];
  const std::string numbers =
      text(int(gather.latency * 1e6), " us + ", int(1e-7 / gather.per_byte) / 100.0, " GB/s a rank (all-gather)");
  const bool known = timings.find(name_of(0, small_bytes)) > 0;
  if (ranks > 1)
    links.sources.push_back(
        "link in the node: " + numbers +
        (known ? " (measured here under mpirun)" : " (assumed from the memory's rate, because " + why_not + ")"));
  return links;
}

}  // namespace zero
