#pragma once
// Planned faults between the disk tier and the system.
#include <functional>
#include <memory>

#include "offload/disk/block_io.h"

namespace zero {

struct FaultPlan {
  int shorten_every = 0;  // every n-th transfer moves only a part; 0: none
  int fail_at = 0;        // this transfer, counted from 1, fails
  int fail_with = 0;      // with this errno
  int count = 0;
  int shortened = 0;
};

class FaultyIo final : public BlockIo {
 public:
  FaultyIo(std::unique_ptr<BlockIo> io, FaultPlan& plan) : io_(std::move(io)), plan_(plan) {}
  const char* name() const override { return "faulty"; }

  void submit(std::uint64_t tag, const Transfer& transfer) override {
    Transfer part = transfer;
    const int number = ++plan_.count;
    if (number == plan_.fail_at) failing_ = tag;
    if (plan_.shorten_every && number % plan_.shorten_every == 0 && part.bytes > 8192) {
      part.bytes = part.bytes / 2 / 4096 * 4096;
      ++plan_.shortened;
    }
    io_->submit(tag, part);
  }

  Completion wait_any() override {
    Completion done = io_->wait_any();
    if (done.tag == failing_) {
      failing_ = 0;
      done.result = -plan_.fail_with;
    }
    return done;
  }

 private:
  std::unique_ptr<BlockIo> io_;
  FaultPlan& plan_;
  std::uint64_t failing_ = 0;
};

/// Returns a value for DiskTierOptions::wrap. The plan must outlive the tier.
inline std::function<std::unique_ptr<BlockIo>(std::unique_ptr<BlockIo>)> with_faults(FaultPlan& plan) {
  return [&plan](std::unique_ptr<BlockIo> io) { return std::make_unique<FaultyIo>(std::move(io), plan); };
}

}  // namespace zero
