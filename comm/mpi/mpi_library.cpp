#include "comm/mpi/mpi_library.h"

#include <mpi.h>

#include <array>

namespace zero {

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> words{};
  int length = 0;
  MPI_Get_library_version(words.data(), &length);
  const std::string all(words.data(), length);
  return all.substr(0, all.find_first_of(",\n"));
}

}  // namespace zero
