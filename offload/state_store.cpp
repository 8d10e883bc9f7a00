#include "offload/state_store.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace zero {

std::int64_t state_bytes(const std::vector<StateSpec>& states, std::int64_t elements) {
  std::int64_t bytes = 0;
  for (const StateSpec& state : states) bytes += state.bytes(elements);
  return bytes;
}

std::int64_t largest_grain(const std::vector<StateSpec>& states) {
  std::int64_t grain = 1;
  for (const StateSpec& state : states) grain = std::max(grain, state.grain);
  return grain;
}

ResidentStateStore::ResidentStateStore(std::int64_t elements, const std::vector<StateSpec>& states, at::Device device)
    : StateStore(elements, states) {
  for (const StateSpec& state : states)
    tensors_.push_back(at::zeros({state.numel(elements)}, at::TensorOptions().dtype(state.type).device(device)));
}

void ResidentStateStore::for_each_chunk(StateAccess, const std::function<void(const StateChunk&)>& visit) {
  if (elements() == 0) return;
  StateChunk chunk{0, elements(), {}};
  for (const at::Tensor& tensor : tensors_) chunk.states.push_back(tensor.data_ptr());
  visit(chunk);
}

StateStoreFactory host_state_stores() {
  return [](const std::string&, std::int64_t elements, const std::vector<StateSpec>& states) {
    return std::make_unique<ResidentStateStore>(elements, states);
  };
}

}  // namespace zero
