#pragma once
// What all ranks of a run must begin with alike. Each reads its own configuration and its own node's files: ranks that
// differ there would train something that nobody asked for, or wait for each other in different places.
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "zero/config/config.h"

namespace zero {

struct StartFact {
  std::string name;   // "optimizer.lr", "the file data.train x.txt"
  std::string value;  // as messages show it
};

/// The program itself, every key of the configuration but offload.nvme_dir, which may be a place of each rank's own, and
/// the beginning, end and size of all files that are read. Of a folder the files in it. `arguments`: words of the command
/// line that change what a run does. UnreadableError for a file that cannot be looked at.
std::vector<StartFact> start_facts(const Config& config, const std::vector<std::string>& arguments);

/// InputError on all ranks with the facts that are not those of rank 0, and on which ranks. Collective.
void check_same_start(const std::vector<StartFact>& mine, Communicator& ranks);

}  // namespace zero
