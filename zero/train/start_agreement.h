#pragma once
// The facts that all ranks of a run must share at the start. Each rank reads its own configuration and its own node's
// files. Ranks that differ in these facts would train with mixed settings, or wait for each other in different calls.
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "zero/config/config.h"

namespace zero {

struct StartFact {
  std::string name;   // "optimizer.lr", "the file data.train x.txt"
  std::string value;  // as shown in messages
};

/// Lists the program itself, every key of the configuration, and the beginning, end and size of all files that are
/// read. A folder stands for the files in it. The key offload.nvme_dir is omitted, since it may differ between ranks.
/// `arguments`: command-line arguments that change what a run does. Throws UnreadableError for a file that cannot be
/// read.
std::vector<StartFact> start_facts(const Config& config, const std::vector<std::string>& arguments);

/// Throws InputError on all ranks if a fact differs from rank 0's, with the values and the ranks. Collective.
void check_same_start(const std::vector<StartFact>& mine, Communicator& ranks);

}  // namespace zero
