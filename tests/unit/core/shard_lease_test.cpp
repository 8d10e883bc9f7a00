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

TEST(ShardLease, WhatCannotBeGivenBackIsAnError) {
  Failing store;
  EXPECT_THROW(const ShardLease held(store, 0, at::kFloat, true), Error);
  EXPECT_EQ(store.releases(), 1);
}

TEST(ShardLease, AnErrorUnderWayIsTheOneThatArrives) {
  Failing store;
  try {
    const ShardLease held(store, 0, at::kFloat, true);
    throw Error("the network is gone");
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the network is gone");
  }
  EXPECT_EQ(store.releases(), 1);
}

// As where a cleanup takes hold of a shard although an error is on its way.
TEST(ShardLease, ACleanupMayFailAndCatchIt) {
  Failing store;
  struct Cleanup {
    Failing& store;
    ~Cleanup() { EXPECT_THROW(const ShardLease held(store, 0, at::kFloat, true), Error); }
  };
  EXPECT_THROW(
      {
        const Cleanup cleanup{store};
        throw Error("the network is gone");
      },
      Error);
  EXPECT_EQ(store.releases(), 1);
}

}  // namespace
}  // namespace zero
