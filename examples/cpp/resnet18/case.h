#pragma once
// A reference case: a short run all of whose results are known (tests/data/vision/README.md).
#include <string>

#include <zero/world.h>

struct CaseOptions {
  std::string dump;  // safetensors file for the results of the run; empty: none
  int stage = 3;
  bool local_statistics = false;
};

/// Runs DIR/case.json: trains DIR/model/model.safetensors on DIR/data_batch_1.bin and evaluates it on
/// DIR/test_batch.bin. Collective.
void run_case(const std::string& directory, const CaseOptions& options, const zero::World& world);
