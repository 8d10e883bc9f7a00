#pragma once
// A reference case: a short run whose every number is known (tests/data/vision/README.md).
#include <string>

#include <zero/world.h>

struct CaseOptions {
  std::string dump;  // safetensors file for the results of the run; empty: none
  int stage = 3;
  bool local_statistics = false;
};

/// Runs DIR/case.json from DIR/model/model.safetensors over DIR/data_batch_1.bin and evaluates DIR/test_batch.bin.
/// Collective.
void run_case(const std::string& directory, const CaseOptions& options, const zero::World& world);
