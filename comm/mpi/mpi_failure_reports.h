#pragma once
// Failure reports by MPI's messages: started without waiting, so that a rank that is dead or stopped delays nobody
// beyond the patience.
#include <memory>

#include "comm/failure_reports.h"

namespace zero {

/// Among the ranks of the group with this Fortran handle, which is duplicated. A rank tells at most 64 KiB. Collective.
std::unique_ptr<FailureReports> make_mpi_failure_reports(int handle);

}  // namespace zero
