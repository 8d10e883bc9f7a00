#pragma once
// PlanMachine: the machine that a plan is for: this one, as measured, or one described by a data sheet or by the user.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zero/config/config.h"
#include "zero/estimate/memory_estimate.h"
#include "zero/plan/kernels.h"
#include "zero/plan/node_links.h"
#include "zero/plan/rate.h"
#include "zero/plan/timings.h"

namespace zero {

struct MachineRequest {
  std::string name = "here";  // "here", or a node sheet
  int nodes = 1;
  int ranks_per_node = 0;  // 0: a rank for each core here, for each GPU of a sheet
  std::string memory;      // of one GPU, or for one rank on CPUs: "80GiB"; empty: as found
  std::string link;        // between nodes, for each node: "100Gbit", "10GB"; empty: the sheet's, 1 Gbit/s here
  std::string program;     // this program's path, started under mpirun to measure collectives; empty: none
  std::string version;     // of this build: another version measures anew
  bool measure = true;     // false: only numbers of the cache
};

struct PlanMachine {
  std::string name;
  int nodes = 1, ranks_per_node = 1, threads = 1;
  bool gpu = false;  // gathers and sums then overlap the computation
  NodeBudget budget;
  std::unique_ptr<Timings> timings;  // of this machine; null for a sheet
  std::unique_ptr<Kernels> kernels;
  NodeLinks links;
  // Bytes per second of one rank.
  Rate host_link, host_memory, disk_read, disk_write;
  Rate disk_update;  // of states that are read and written back
  std::vector<std::string> notes;

  int ranks() const { return nodes * ranks_per_node; }
  bool is_here() const { return timings && nodes == 1; }
  std::string describe() const;
  /// One line per number, with its source.
  std::vector<std::string> sources() const;
};

/// The ranks that this machine has by default: the cores that this process may use, by its mask and the limit of its
/// control group.
int ranks_here();

/// The ranks of the machine that a request names.
std::int64_t ranks_of(const MachineRequest& request);

/// `config`: names the folder of offloaded states. Throws InputError for an unknown machine, a size without a unit, or
/// a link between nodes of a single node.
PlanMachine make_machine(const MachineRequest& request, const Config& config);

/// Bytes per second of "100Gbit", "10GB" or "1.5 GB/s". Throws InputError that names `option`.
double link_rate(const std::string& words, const std::string& option);

}  // namespace zero
