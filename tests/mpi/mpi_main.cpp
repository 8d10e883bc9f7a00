// main() of test programs under mpirun: every rank runs all cases; rank 0 reports, the others speak when one of theirs
// fails.
#include "tests/mpi/mpi_world.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "base/error.h"

namespace zero {
namespace {

Job* world_of_program = nullptr;

class FailuresOnly final : public testing::EmptyTestEventListener {
 public:
  explicit FailuresOnly(int rank) : rank_(rank) {}

 private:
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed())
      std::fprintf(stderr, "[rank %d] %s:%d: %s\n", rank_, result.file_name(), result.line_number(), result.message());
  }
  int rank_;
};

}  // namespace

Job& mpi_world() {
  ZERO_CHECK(world_of_program, "tests run inside Job::run");
  return *world_of_program;
}

}  // namespace zero

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return zero::Job::run([](zero::Job& job) {
    zero::world_of_program = &job;
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    if (job.rank() != 0) {
      delete listeners.Release(listeners.default_result_printer());
      listeners.Append(new zero::FailuresOnly(job.rank()));
    }
    return RUN_ALL_TESTS();
  });
}
