// The functions that libFuzzer calls: the one target that this program is linked with, and changes that know how its
// files are built.
#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/log.h"
#include "tests/fuzz/file_changes.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

const zero::FuzzTarget& target() {
  static const zero::FuzzTarget* const only = zero::FuzzTarget::all().front();
  return *only;
}

/// Changes bytes as libFuzzer does, with its dictionary and the values that it saw compared.
std::string changed_bytes(const std::string& content) {
  std::string bytes = content;
  const std::size_t most = content.size() + 256;
  bytes.resize(most);
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(bytes.data()), content.size(), most));
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  zero::start_log(0, 1, zero::LogLevel::error);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  target().run({reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::string made = zero::changed_input(target(), input, seed, changed_bytes);
  const std::size_t taken = std::min(made.size(), most);
  std::memcpy(data, made.data(), taken);
  return taken;
}
