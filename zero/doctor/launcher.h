#pragma once
// Examines mpirun, and starts two ranks that greet each other.
#include <string>

#include "zero/doctor/finding.h"

namespace zero {

class Job;

/// The mpirun that PATH names, its version, and its slots on this machine. The version must be that of the library that
/// this program has loaded.
Finding examine_mpirun();

/// Starts two ranks of `program` with `option`, so that they run greet(). Returns the line that they print, or the
/// first error line.
Finding examine_ranks(const std::string& program, const std::string& option);

/// A rank of examine_ranks(): checks the sum of an all-reduce, measures it, and prints a line on rank 0. Throws Error
/// if the sum is wrong.
void greet(Job& job);

}  // namespace zero
