#pragma once
// What the emulated cuBLASLt was asked for, and what it refuses, for tests: whether the program has it is known when it runs.

extern "C" {

struct EmulatedLtCounts {
  long searches = 0;  // for algorithms
  long products = 0;  // launched, those of a capture too
  long slow = 0;      // of these, by another algorithm than the problem's fastest
  long split = 0;     // by one that sums in several parts
};
/// Null on a real GPU.
__attribute__((weak)) const EmulatedLtCounts* zero_emulated_lt_counts();
/// Whether a problem's fastest algorithm is refused where the product is added to a matrix; not at first.
__attribute__((weak)) void zero_emulated_lt_refuse_fastest_sum(bool refuses);

}  // extern "C"
