#include "offload/memory/cpu_allocator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "base/memory_tracker.h"

namespace zero {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

CpuAllocatorOptions small_options(bool poison = false) {
  CpuAllocatorOptions options;
  options.poison = poison;
  options.arena.reserve_bytes = std::size_t{8} << 30;
  return options;
}

TEST(CpuAllocator, AlignsEveryBlockAndKeepsThemApart) {
  CpuAllocator allocator(small_options());
  std::vector<c10::DataPtr> blocks;
  for (std::size_t bytes :
       {1ul, 63ul, 64ul, 65ul, 1000ul, 4096ul, 32703ul, 32704ul, 32705ul, 70000ul, 3 * mib, 3 * mib + 1}) {
    blocks.push_back(allocator.allocate(bytes));
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().get()) % 64, 0u);
    std::memset(blocks.back().get(), static_cast<int>(blocks.size()), bytes);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i)
    EXPECT_EQ(*static_cast<char*>(blocks[i].get()), static_cast<char>(i + 1));
}

TEST(CpuAllocator, ZeroBytesAreANullPointer) {
  CpuAllocator allocator(small_options());
  EXPECT_EQ(allocator.allocate(0).get(), nullptr);
}

TEST(CpuAllocator, BooksRequestedBytesUnderTheScopesOfTheAllocatingThread) {
  CpuAllocator allocator(small_options());
  MemoryTracker tracker;
  const TrackerScope in_tracker(tracker);
  c10::DataPtr gradient, other;
  {
    const CategoryScope scope(MemoryCategory::gradients);
    gradient = allocator.allocate(5 * mib + 1);
    {
      const CategoryScope inner(MemoryCategory::buffers);
      const c10::DataPtr buffer = allocator.allocate(100);
      EXPECT_EQ(tracker.live(MemoryCategory::buffers), 128);
    }
  }
  other = allocator.allocate(64);
  EXPECT_EQ(tracker.live(MemoryCategory::gradients), static_cast<std::int64_t>(5 * mib + 64));
  EXPECT_EQ(tracker.live(MemoryCategory::buffers), 0);
  EXPECT_EQ(tracker.peak(MemoryCategory::buffers), 128);
  EXPECT_EQ(tracker.live(MemoryCategory::other), 64);
  EXPECT_EQ(tracker.live(), static_cast<std::int64_t>(5 * mib + 128));
  EXPECT_EQ(tracker.peak(), static_cast<std::int64_t>(5 * mib + 64 + 128));
  std::thread([&] { gradient.clear(); }).join();  // freed by a thread that has no scopes
  EXPECT_EQ(tracker.live(MemoryCategory::gradients), 0);
  tracker.reset_peak();
  EXPECT_EQ(tracker.peak(), 64);
}

TEST(CpuAllocator, EachRankThreadHasItsOwnTracker) {
  CpuAllocator allocator(small_options());
  std::array<MemoryTracker, 4> trackers;
  std::vector<std::thread> ranks;
  std::array<c10::DataPtr, 4> kept;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([&, rank] {
      const TrackerScope scope(trackers[rank]);
      for (int i = 0; i < 2000; ++i) allocator.allocate(static_cast<std::size_t>(i) * 97 + 1);
      kept[rank] = allocator.allocate((rank + 1) * 6400);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (std::size_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(trackers[rank].live(), static_cast<std::int64_t>((rank + 1) * 6400));
}

TEST(CpuAllocator, PoisonsFreshBlocks) {
  CpuAllocator allocator(small_options(true));
  for (const std::size_t bytes : {256ul, 1 * mib}) {
    const c10::DataPtr block = allocator.allocate(bytes);
    for (std::size_t i = 0; i < bytes / 4; ++i) ASSERT_TRUE(std::isnan(static_cast<float*>(block.get())[i]));
  }
}

TEST(CpuAllocator, PoisonsFreedBlocks) {
  CpuAllocator allocator(small_options(true));
  c10::DataPtr block = allocator.allocate(1 * mib);
  float* data = static_cast<float*>(block.get());
  data[1000] = 1.0f;
  block.clear();
  EXPECT_TRUE(std::isnan(data[1000]));  // the pages stay with the pool
}

TEST(CpuAllocator, RepeatedStepsGetTheSameAddresses) {
  CpuAllocator allocator(small_options());
  std::vector<void*> first;
  for (int step = 0; step < 3; ++step) {
    std::vector<c10::DataPtr> blocks;
    std::vector<void*> addresses;
    for (int i = 0; i < 50; ++i) {
      blocks.push_back(allocator.allocate((static_cast<std::size_t>(i % 7) + 1) * mib / 3));
      addresses.push_back(blocks.back().get());
      if (i % 3 == 2) blocks.erase(blocks.begin() + i % 5);
    }
    if (step == 0) first = addresses;
    EXPECT_EQ(addresses, first);
  }
}

TEST(CpuAllocator, TrimGivesBackAllThatIsFree) {
  CpuAllocatorOptions options = small_options();
  options.arena.slack_bytes = std::size_t{1} << 30;
  CpuAllocator allocator(options);
  c10::DataPtr kept = allocator.allocate(10 * mib);
  { const c10::DataPtr gone = allocator.allocate(100 * mib); }
  EXPECT_GT(allocator.pooled_bytes(), 100 * mib);
  EXPECT_GE(allocator.trim(), 98 * mib);
  EXPECT_LE(allocator.pooled_bytes(), 4 * mib);
  static_cast<char*>(kept.get())[10 * mib - 1] = 1;
}

/// One step of training as the pool sees it: weights and states stay. Activations pile up through the forward and go in
/// the backward in reverse, among temporaries of odd sizes. Sequence lengths differ from step to step.
TEST(CpuAllocator, PagesStayNearTheBytesInUse) {
  CpuAllocator allocator(small_options());
  std::mt19937 random(7);
  std::vector<c10::DataPtr> states;
  for (int i = 0; i < 60; ++i) states.push_back(allocator.allocate((random() % 9 + 1) * mib));
  std::size_t live_peak = 0, resident_peak = 0;
  const auto look = [&] {
    live_peak = std::max(live_peak, allocator.live_bytes());
    resident_peak = std::max(resident_peak, allocator.live_bytes() + allocator.pooled_bytes());
  };
  for (int step = 0; step < 20; ++step) {
    const std::size_t tokens = 200 + random() % 800;
    std::vector<std::vector<c10::DataPtr>> layers(24);
    for (auto& layer : layers) {
      for (const std::size_t width : {768ul, 768ul, 1280ul, 4096ul, 2048ul}) {
        layer.push_back(allocator.allocate(tokens * width * 4));
        const c10::DataPtr temporary = allocator.allocate(tokens * width * 2 + random() % 4096);
        look();
      }
    }
    while (!layers.empty()) {
      const c10::DataPtr gradient = allocator.allocate(7 * mib);
      const c10::DataPtr flow = allocator.allocate(tokens * 4096 * 4);
      look();
      layers.pop_back();
    }
  }
  EXPECT_LE(static_cast<double>(resident_peak), 1.05 * static_cast<double>(live_peak));
}

TEST(CpuAllocator, TensorsUseItAndOutliveIt) {
  at::Tensor survivor;
  MemoryTracker tracker;
  {
    CpuAllocator allocator(small_options());
    allocator.install();
    const TrackerScope scope(tracker);
    survivor = at::ones({1000, 1000});
    EXPECT_EQ(allocator.live_bytes(), 4000000u);
    EXPECT_EQ(tracker.live(), 4000000);
  }
  const at::Tensor after = at::ones({10});  // by the allocator that was there before
  EXPECT_EQ(tracker.live(), 4000000);
  EXPECT_EQ(survivor.sum().item<float>(), 1e6f);
  survivor.reset();
  EXPECT_EQ(tracker.live(), 0);
}

}  // namespace
}  // namespace zero
