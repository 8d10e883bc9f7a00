#pragma once
// DiskProbe: the rates at which this machine's disk serves offloaded states, measured with the tier of a run.
#include <string>

namespace zero {

/// Bytes of states per second of one rank, while all ranks of the node work at once.
struct DiskRates {
  double read = 0;    // only read
  double write = 0;   // only written
  double update = 0;  // read and written back: each byte counts once
};

/// Measures in a folder of its own below `folder`, with at most 768 MiB of files, in about a second. All rates are 0 if
/// it cannot be written to, or has too little room.
DiskRates measure_disk(const std::string& folder, int ranks);

}  // namespace zero
