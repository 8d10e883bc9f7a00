#include "zero/core/buffers/shard_lease.h"

#include <gtest/gtest.h>

#include <array>

#include "base/error.h"

namespace zero {
namespace {

/// One shard, which the disk does not take back.
class Failing final : public ShardStore {
 public:
  Failing() : ShardStore({8}) {}
  StoredShard home() { return StoredShard(*this, 0, at::kFloat, false); }
  void* acquire(int) override { return bytes_.data(); }
  void release(int, bool) override {
    ++releases_;
    throw Error("the disk is gone");
  }
  int releases() const { return releases_; }

 private:
  alignas(64) std::array<char, 8> bytes_{};
  int releases_ = 0;
};

TEST(ShardLease, AFailureToReleaseIsAnError) {
  Failing store;
  StoredShard home = store.home();
  EXPECT_THROW(const ShardLease held(home, true), Error);
  EXPECT_EQ(store.releases(), 1);
}

TEST(ShardLease, AnErrorUnderWayIsTheOneThatArrives) {
  Failing store;
  StoredShard home = store.home();
  try {
    const ShardLease held(home, true);
    throw Error("the network is gone");
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the network is gone");
  }
  EXPECT_EQ(store.releases(), 1);
}

// This is a cleanup that takes hold of a shard while an error propagates.
TEST(ShardLease, ACleanupMayFailAndCatchIt) {
  Failing store;
  StoredShard home = store.home();
  struct Cleanup {
    StoredShard& home;
    ~Cleanup() { EXPECT_THROW(const ShardLease held(home, true), Error); }
  };
  EXPECT_THROW(
      {
        const Cleanup cleanup{home};
        throw Error("the network is gone");
      },
      Error);
  EXPECT_EQ(store.releases(), 1);
}

}  // namespace
}  // namespace zero
