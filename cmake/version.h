#pragma once
// The version that programs print. Only programs link this, because the commit changes more often than anything else.
#include <string>

namespace zero {

/// "0.1.0 (commit 44116d0)". Outside a git repository the commit is omitted.
std::string version();

/// "PROGRAM 0.1.0 (commit 44116d0)", and a line with the libraries: LibTorch as compiled against, MPI as loaded, CUDA
/// or none. Link the CMake target zero_version to call it, or zero_own_version for version() alone.
std::string version_text(const std::string& program);

}  // namespace zero
