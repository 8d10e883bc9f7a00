#include "zero/plan/plan_machine.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/byte_count.h"
#include "base/core_share.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/files/free_space.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "base/process/control_group.h"
#include "base/process/process_facts.h"
#include "offload/memory/process_memory.h"
#include "zero/estimate/nearest_fit.h"
#include "zero/estimate/target_machine.h"
#include "zero/plan/collective_probe.h"
#include "zero/plan/disk_probe.h"
#include "zero/plan/measured_kernels.h"
#include "zero/plan/node_sheets.h"
#include "zero/plan/sheet_kernels.h"

namespace zero {
namespace {

constexpr double share_of_link = 0.8;     // of a link's rate that collectives reach
constexpr double gpu_latency = 8e-6;      // seconds, of a collective inside a node
constexpr double network_latency = 5e-6;  // for each node of a ring
constexpr double cable_latency = 50e-6;   // of messages over TCP

void add_network(PlanMachine& machine, const MachineRequest& request, double sheet_rate) {
  if (machine.nodes == 1 && !request.link.empty())
    throw InputError("--link " + request.link + ": is the link between nodes; give --nodes too");
  if (machine.nodes == 1) return;
  const bool given = !request.link.empty(), sheet = sheet_rate > 0 && !given;
  const double rate = given   ? link_rate(request.link, "--link") / machine.ranks_per_node
                      : sheet ? sheet_rate * share_of_link
                              : 125e6 / machine.ranks_per_node;
  machine.links.between = {machine.gpu ? network_latency : cable_latency, 1 / rate};
  machine.links.sources.push_back(text("link between nodes: ", int(rate / 1e7) / 100.0, " GB/s a rank (",
                                       given   ? "--link"
                                       : sheet ? "80 % of the data sheet's, assumed"
                                               : "assumed: 1 Gbit/s a node; --link names another",
                                       "), ",
                                       machine.gpu ? "5 us for each node of a ring (assumed)" : "50 us (assumed)"));
}

PlanMachine machine_of_sheet(const MachineRequest& request) {
  const NodeSheet& sheet = node_sheet(request.name);
  PlanMachine machine;
  machine.name = sheet.name;
  machine.nodes = request.nodes;
  machine.ranks_per_node = request.ranks_per_node > 0 ? request.ranks_per_node : sheet.gpus;
  machine.gpu = true;
  TargetMachine target;
  target.ranks_per_node = machine.ranks_per_node;
  target.device = "cuda";
  target.memory = request.memory.empty() ? text(std::int64_t(sheet.memory), "B") : request.memory;
  machine.budget = budget_of(target, c10::Device(at::kCUDA, 0));
  machine.budget.memory = {std::int64_t(sheet.host_memory), "the data sheet"};
  machine.kernels = std::make_unique<SheetKernels>(sheet);
  machine.links.ranks_per_node = machine.ranks_per_node;
  machine.links.in_node.fill({gpu_latency, 1 / (sheet.link_in_node * share_of_link)});
  machine.links.sources.push_back(
      text("link in the node: 80 % (assumed) of ", sheet.link_in_node / 1e9, " GB/s (data sheet), 8 us (assumed)"));
  add_network(machine, request, sheet.link_between);
  const int gpus = machine.ranks_per_node;
  machine.host_link = {sheet.host_link * share_of_link, "80 % (assumed) of the data sheet's PCIe rate"};
  machine.host_memory = {sheet.host_rate * 0.6 / gpus, "60 % (assumed) of the host's channels, divided by the GPUs"};
  machine.disk_read = {sheet.disk_read / gpus, "the node's drives (" + sheet.disk_source + "), divided"};
  machine.disk_write = {sheet.disk_write / gpus, "the same"};
  machine.disk_update = {1 / (1 / machine.disk_read.value + 1 / machine.disk_write.value), "both in turns"};
  if (!sheet.runs_zero) machine.notes.push_back("zero has no backend for this GPU: the plan only compares machines");
  machine.notes.push_back("no GPU has run zero's kernels yet: rates are assumed shares of the data sheet");
  return machine;
}

void measure_disk_of(PlanMachine& machine, const Config& config, bool measure) {
  Timings& timings = *machine.timings;
  // A run makes the folder; until then its disk is that of the nearest parent.
  std::filesystem::path nearest = std::filesystem::absolute(offload_directory(config)).lexically_normal();
  while (!is_there(nearest.string()) && nearest.has_relative_path()) nearest = nearest.parent_path();
  const std::string folder = nearest.string();
  const auto name = [&](const char* what) { return text("disk ", what, " ", folder); };
  if (measure && timings.find(name("update")) == 0) {
    const DiskRates rates = measure_disk(folder, machine.ranks_per_node);
    if (rates.update > 0) {
      timings.put(name("read"), 1 / rates.read);
      timings.put(name("write"), 1 / rates.write);
      timings.put(name("update"), 1 / rates.update);
    }
  }
  const bool known = timings.find(name("update")) > 0;
  const std::string source = known ? "measured in " + folder : "assumed";
  const auto rate = [&](const char* what, double assumed) {
    return Rate{known ? 1 / timings.find(name(what)) : assumed / machine.ranks_per_node, source};
  };
  machine.disk_read = rate("read", 1e9);
  machine.disk_write = rate("write", 1e9);
  machine.disk_update = rate("update", 5e8);
}

PlanMachine machine_here(const MachineRequest& request, const Config& config) {
  PlanMachine machine;
  const int cores = ranks_here();
  machine.name = "this machine";
  machine.nodes = request.nodes;
  machine.ranks_per_node = request.ranks_per_node > 0 ? request.ranks_per_node : cores;
  machine.threads = std::max(1, cores / machine.ranks_per_node);
  if (const char* threads = std::getenv("OMP_NUM_THREADS"); threads && std::atoi(threads) > 0)
    machine.threads = std::atoi(threads);
  if (request.memory.empty()) {
    machine.budget.ranks_here = machine.ranks_per_node;
    machine.budget.memory = node_memory();
    machine.budget.process = pss_bytes();
  } else {
    TargetMachine target;
    target.ranks_per_node = machine.ranks_per_node;
    target.memory = request.memory;
    machine.budget = budget_of(target, at::kCPU);
  }
  machine.budget.disk_free = free_disk_bytes(offload_directory(config));
  const std::string identity =
      text(processor_name(), "|", cores, "|", machine.ranks_per_node, "|", machine.threads, "|", request.version);
  machine.timings = std::make_unique<Timings>(timings_path(identity));
  if (!request.measure) machine.timings->set_budget(-1);
  if (machine.ranks_per_node * machine.threads > cores)
    machine.notes.push_back(text(machine.ranks_per_node * machine.threads, " threads of ", machine.ranks_per_node,
                                 " ranks share ", cores, " cores here; times are those of a core for each thread"));
  const RankThreads ranks{machine.ranks_per_node, machine.threads};
  machine.kernels = std::make_unique<MeasuredKernels>(ranks, *machine.timings);
  machine.kernels->stream(1);
  machine.timings->confirm();  // links and memory take their rates from this number
  const double memory_rate = 1 / machine.kernels->stream(1);
  std::string why = "measuring is off";
  if (request.measure && !request.program.empty())
    why = run_probe(request.program, machine.ranks_per_node, *machine.timings);
  machine.links = links_of_node(machine.ranks_per_node, *machine.timings, memory_rate, why);
  add_network(machine, request, 0);
  machine.host_memory = {memory_rate, "measured here"};
  measure_disk_of(machine, config, request.measure);
  return machine;
}

}  // namespace

int ranks_here() {
  const int own = int(own_cores().count());
  const int cores = own > 0 ? own : std::max(1, int(std::thread::hardware_concurrency()));
  const double limit = control_group_cores();
  return limit > 0 ? std::min(cores, std::max(1, int(std::ceil(limit)))) : cores;
}

std::int64_t ranks_of(const MachineRequest& request) {
  const std::int64_t each = request.ranks_per_node > 0 ? request.ranks_per_node
                            : request.name == "here"   ? ranks_here()
                                                       : node_sheet(request.name).gpus;
  return each * request.nodes;
}

double link_rate(const std::string& words, const std::string& option) {
  std::string number = words;
  for (const char* ending : {"/s", "ps"})
    if (number.size() > 2 && number.ends_with(ending)) number.resize(number.size() - 2);
  const std::pair<const char*, double> units[] = {{"Gbit", 1e9 / 8}, {"Mbit", 1e6 / 8}, {"Gb", 1e9 / 8},
                                                  {"Mb", 1e6 / 8},   {"GB", 1e9},       {"MB", 1e6}};
  for (const auto& [unit, bytes] : units) {
    if (!number.ends_with(unit)) continue;
    const std::string digits = number.substr(0, number.size() - std::string(unit).size());
    char* end = nullptr;
    const double value = std::strtod(digits.c_str(), &end);
    while (*end && std::isspace(static_cast<unsigned char>(*end))) ++end;
    if (end != digits.c_str() && !*end && value > 0) return value * bytes;
  }
  throw InputError(option + " " + words + ": is no rate; name a number above 0 with its unit, as in 100Gbit or 10GB");
}

std::string PlanMachine::describe() const {
  std::string ranks_of = text(ranks_per_node, gpu ? " GPU" : " rank", ranks_per_node == 1 ? "" : "s");
  if (!gpu) ranks_of += text(" of ", threads, threads == 1 ? " thread" : " threads");
  const std::int64_t memory = budget.memory.available;
  const std::string room = gpu              ? bytes_text(*budget.device_free) + " free on a GPU"
                           : memory < 0     ? "unknown memory"
                           : budget.assumed ? bytes_text(memory / budget.ranks_here + budget.process) + " for each rank"
                                            : bytes_text(memory) + " free in memory";
  return text(name, ": ", counted(nodes, "node"), " with ", ranks_of, ", ", room);
}

std::vector<std::string> PlanMachine::sources() const {
  std::vector<std::string> lines = kernels->sources();
  lines.insert(lines.end(), links.sources.begin(), links.sources.end());
  if (gpu) {
    lines.push_back(text("host link: ", int(host_link.value / 1e7) / 100.0, " GB/s (", host_link.source, ")"));
    lines.push_back(text("host memory: ", int(host_memory.value / 1e7) / 100.0, " GB/s (", host_memory.source, ")"));
  }
  lines.push_back(text("disk: ", int(disk_read.value / 1e7) / 100.0, " GB/s read, ",
                       int(disk_write.value / 1e7) / 100.0, " GB/s written, ", int(disk_update.value / 1e7) / 100.0,
                       " GB/s updated, for each rank (", disk_read.source, ")"));
  return lines;
}

PlanMachine make_machine(const MachineRequest& request, const Config& config) {
  return request.name == "here" ? machine_here(request, config) : machine_of_sheet(request);
}

}  // namespace zero
