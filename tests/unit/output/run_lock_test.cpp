#include "zero/output/run_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

/// Somebody who holds the lock of a folder while they look at it, as zero_report does: until the one who waits pauses.
class LooksAtTheLock final : public FileCalls {
 public:
  explicit LooksAtTheLock(const std::string& folder) : held_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY)) {
    EXPECT_EQ(::flock(held_, LOCK_SH | LOCK_NB), 0);
  }
  ~LooksAtTheLock() override { let_go(); }
  void pause(std::chrono::milliseconds) override { let_go(); }

 private:
  void let_go() {
    if (held_ >= 0) ::close(held_);
    held_ = -1;
  }
  int held_;
};

TEST(RunLock, WaitsForOneWhoOnlyLooks) {
  const TemporaryFolder folder;
  LooksAtTheLock calls(folder.path());
  EXPECT_NO_THROW(RunLock(folder.path(), calls));
}

TEST(RunLock, ALookDoesNotTakeAnotherLookForARun) {
  const TemporaryFolder folder;
  LooksAtTheLock looks(folder.path());
  EXPECT_FALSE(is_locked(folder.path(), looks));
  FileCalls calls;
  const RunLock run(folder.path(), calls);
  EXPECT_TRUE(is_locked(folder.path(), calls));
}

TEST(RunLock, RefusesASecondRun) {
  const TemporaryFolder folder;
  FileCalls calls;
  const RunLock first(folder.path(), calls);
  EXPECT_THAT(message_of<InputError>([&] { RunLock(folder.path(), calls); }),
              testing::HasSubstr("is in use by another run"));
}

}  // namespace
}  // namespace zero
