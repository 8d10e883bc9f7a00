#pragma once
// mpirun, and two ranks that greet each other.
#include <string>

#include "zero/doctor/finding.h"

namespace zero {

class Job;

/// Which mpirun the PATH names, its version, and its slots on this machine. The version must be that of the library
/// that this program has loaded.
Finding examine_mpirun();

/// Starts two ranks of `program` with `option`, which run greet(). Returns their words, or the first error line.
Finding examine_ranks(const std::string& program, const std::string& option);

/// A rank of examine_ranks(): checks the sum of an all-reduce, measures it, and prints a line on rank 0. Throws Error
/// if the sum is wrong.
void greet(Job& job);

}  // namespace zero
