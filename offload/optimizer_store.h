#pragma once
// OptimizerStore: where the master weights and moments of one flat shard live, and the update that runs over them.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "offload/kernels/optimizer_kernel.h"

namespace zero {

/// The states of elements [begin, end) of the shard, in memory while a visit lasts.
struct StateChunk {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  void* master = nullptr;  // null where the store keeps none: the weights are the master
  void* m = nullptr;
  void* v = nullptr;
};

/// What a visit does with the states: `read` leaves them, `write` sets them all without having seen them.
enum class StateAccess : std::uint8_t { read, write, read_write };

/// The other two parts of an update; both cover the whole shard.
struct UpdateSpans {
  const void* gradient = nullptr;
  c10::ScalarType gradient_type = c10::kFloat;
  void* weights = nullptr;  // null: only the master is updated
  c10::ScalarType weight_type = c10::kFloat;
};

class OptimizerStore {
 public:
  virtual ~OptimizerStore() = default;
  OptimizerStore(const OptimizerStore&) = delete;
  OptimizerStore& operator=(const OptimizerStore&) = delete;

  std::int64_t elements() const { return elements_; }
  c10::ScalarType state_type() const { return state_type_; }
  bool has_master() const { return has_master_; }

  /// Every element once, in ascending chunks. States start as zeros. Throws Error when the medium fails.
  virtual void for_each_chunk(StateAccess access, const std::function<void(const StateChunk&)>& visit) = 0;

  /// Begins to bring the first chunks in, where that takes time: for the unit whose update comes next.
  virtual void prefetch() {}

  /// One step of the factors' optimizer; the same kernel and so the same bits wherever the states live. Without a
  /// master, weights are of the states' type and are the master.
  void update(const StepFactors& factors, const std::vector<DecayRange>& ranges, const UpdateSpans& spans);

 protected:
  OptimizerStore(std::int64_t elements, c10::ScalarType state_type, bool has_master)
      : elements_(elements), state_type_(state_type), has_master_(has_master) {}

 private:
  std::int64_t elements_;
  c10::ScalarType state_type_;
  bool has_master_;
};

/// States in tensors of this process: contiguous, of one type and length; an undefined master means that the store has
/// none.
class ResidentOptimizerStore final : public OptimizerStore {
 public:
  ResidentOptimizerStore(const at::Tensor& master, const at::Tensor& m, const at::Tensor& v);
  void for_each_chunk(StateAccess access, const std::function<void(const StateChunk&)>& visit) override;

 private:
  at::Tensor master_, m_, v_;
};

/// One in host memory, all zeros.
std::unique_ptr<OptimizerStore> make_host_optimizer_store(std::int64_t elements, c10::ScalarType state_type,
                                                          bool has_master);

}  // namespace zero
