#pragma once
// StateStore: holds the optimizer states of one part of a shard, including master weights.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace zero {

/// One array of states.
struct StateSpec {
  std::string name;  // the name in checkpoints: "master", "exp_avg"
  at::ScalarType type = at::kFloat;
  std::int64_t grain = 1;  // elements that share one number: 1, or a block's

  /// Returns how many numbers `elements` elements need. The last block may be short.
  std::int64_t numel(std::int64_t elements) const { return (elements + grain - 1) / grain; }
  std::int64_t bytes(std::int64_t elements) const { return numel(elements) * std::int64_t(c10::elementSize(type)); }

  bool operator==(const StateSpec&) const = default;
};

/// The bytes of all states of `elements` elements, and the largest grain among the states.
std::int64_t state_bytes(const std::vector<StateSpec>& states, std::int64_t elements);
std::int64_t largest_grain(const std::vector<StateSpec>& states);

/// The states of elements [begin, end) while they are in memory for a visit: one array per spec. `begin` is a multiple
/// of every grain.
struct StateChunk {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::vector<void*> states;
};

/// How a visit uses the states. `read` does not change them. `write` sets all of them without reading them.
enum class StateAccess : std::uint8_t { read, write, read_write };

class StateStore {
 public:
  virtual ~StateStore() = default;
  StateStore(const StateStore&) = delete;
  StateStore& operator=(const StateStore&) = delete;

  std::int64_t elements() const { return elements_; }
  const std::vector<StateSpec>& states() const { return states_; }

  /// Visits every element once, in ascending chunks. States start as zeros. Throws Error if the medium fails.
  virtual void for_each_chunk(StateAccess access, const std::function<void(const StateChunk&)>& visit) = 0;

  /// Starts to load the first chunks, if loading takes time. Call it for the unit that will be updated next.
  virtual void prefetch() {}

 protected:
  StateStore(std::int64_t elements, std::vector<StateSpec> states) : elements_(elements), states_(std::move(states)) {}

 private:
  std::int64_t elements_;
  std::vector<StateSpec> states_;
};

/// Makes a store of `elements` elements, all zeros. `name` is the name of the store's file, if there is one.
using StateStoreFactory = std::function<std::unique_ptr<StateStore>(const std::string& name, std::int64_t elements,
                                                                    const std::vector<StateSpec>& states)>;

/// Holds states in tensors of this process, on any device. All of them form one chunk.
class ResidentStateStore final : public StateStore {
 public:
  ResidentStateStore(std::int64_t elements, const std::vector<StateSpec>& states, at::Device device = at::kCPU);
  void for_each_chunk(StateAccess access, const std::function<void(const StateChunk&)>& visit) override;

 private:
  std::vector<at::Tensor> tensors_;
};

/// Returns a factory of stores in host memory.
StateStoreFactory host_state_stores();

}  // namespace zero
