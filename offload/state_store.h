#pragma once
// StateStore: the place of the optimizer's states of one part of a shard, including master weights.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace zero {

/// One array of states.
struct StateSpec {
  std::string name;  // as checkpoints call it: "master", "exp_avg"
  at::ScalarType type = at::kFloat;
  std::int64_t grain = 1;  // elements that share a number: 1, or those of a block

  /// Numbers for `elements` elements. The last block may be short.
  std::int64_t numel(std::int64_t elements) const { return (elements + grain - 1) / grain; }
  std::int64_t bytes(std::int64_t elements) const { return numel(elements) * std::int64_t(c10::elementSize(type)); }

  bool operator==(const StateSpec&) const = default;
};

/// Bytes of all states of `elements` elements, and the largest grain among them.
std::int64_t state_bytes(const std::vector<StateSpec>& states, std::int64_t elements);
std::int64_t largest_grain(const std::vector<StateSpec>& states);

/// The states of elements [begin, end), in memory during a visit: an array for each spec. `begin` is a multiple of
/// every grain.
struct StateChunk {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::vector<void*> states;
};

/// A visit's use of the states. `read` leaves them, `write` sets them all without reading them.
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

  /// Starts to load the first chunks, if that takes time. Call it for the unit whose update comes next.
  virtual void prefetch() {}

 protected:
  StateStore(std::int64_t elements, std::vector<StateSpec> states) : elements_(elements), states_(std::move(states)) {}

 private:
  std::int64_t elements_;
  std::vector<StateSpec> states_;
};

/// Makes a store of `elements` elements, all zeros. `name` is that of its file, if it has one.
using StateStoreFactory = std::function<std::unique_ptr<StateStore>(const std::string& name, std::int64_t elements,
                                                                    const std::vector<StateSpec>& states)>;

/// States in tensors of this process, on any device, as one chunk.
class ResidentStateStore final : public StateStore {
 public:
  ResidentStateStore(std::int64_t elements, const std::vector<StateSpec>& states, at::Device device = at::kCPU);
  void for_each_chunk(StateAccess access, const std::function<void(const StateChunk&)>& visit) override;

 private:
  std::vector<at::Tensor> tensors_;
};

/// The factory of stores in host memory.
StateStoreFactory host_state_stores();

}  // namespace zero
