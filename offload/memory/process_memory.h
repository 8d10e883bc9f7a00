#pragma once
// The kernel's counts of this process's memory, as users see them in their tools. Linux only. Returns 0 if a file in
// /proc is missing.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace zero {

std::int64_t pss_bytes();            // proportional set size: a page shared by n processes counts 1/n in each
std::int64_t peak_resident_bytes();  // VmHWM: a shared page counts fully in every process that touched it
void reset_peak_resident_bytes();

/// Samples Pss while it lives. Each sample walks the page tables, so do not use this in a timed section.
class PssSampler {
 public:
  explicit PssSampler(std::chrono::milliseconds interval);
  ~PssSampler();
  PssSampler(const PssSampler&) = delete;
  PssSampler& operator=(const PssSampler&) = delete;

  std::int64_t peak() const { return peak_; }

 private:
  std::atomic<std::int64_t> peak_{0};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace zero
