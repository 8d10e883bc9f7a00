#pragma once
// DeviceAdapter: passes the conformance suite's CPU tensors to a communicator of CUDA tensors, and preserves overlaps
// between tensors.
#include <ATen/ATen.h>

#include "comm/decorators/forwarding_communicator.h"

namespace zero {

class DeviceAdapter final : public ForwardingCommunicator {
 public:
  DeviceAdapter(std::unique_ptr<Communicator> inner, at::Device device)
      : ForwardingCommunicator(*inner), inner_(std::move(inner)), device_(device) {}

  CollectiveMemory& memory() override { return memory_; }

 private:
  at::Tensor up(const at::Tensor& t) const { return t.to(device_); }
  /// Copies the shard to the device. If the shard is a slice of `full`, returns that slice of `full`'s copy instead.
  at::Tensor part_of(const at::Tensor& full, const at::Tensor& copy, const at::Tensor& shard) const {
    const char* own =
        static_cast<const char*>(full.const_data_ptr()) + static_cast<std::size_t>(rank()) * shard.nbytes();
    const bool inside =
        shard.nbytes() > 0 && shard.const_data_ptr() == own && shard.scalar_type() == full.scalar_type();
    return inside ? copy.narrow(0, rank() * shard.numel(), shard.numel()) : up(shard);
  }

  void do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) override {
    const at::Tensor copy = up(full);
    ForwardingCommunicator::do_all_gather(copy, part_of(full, copy, shard), call);
    full.copy_(copy);
  }
  void do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                         const CallRecord& call) override {
    const at::Tensor copy = up(full), part = part_of(full, copy, shard);
    ForwardingCommunicator::do_reduce_scatter(part, copy, options, call);
    shard.copy_(part);
  }
  void do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) override {
    const at::Tensor copy = up(tensor);
    ForwardingCommunicator::do_all_reduce(copy, options, call);
    tensor.copy_(copy);
  }
  void do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) override {
    const at::Tensor copy = up(tensor);
    ForwardingCommunicator::do_broadcast(copy, root, call);
    tensor.copy_(copy);
  }
  void do_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts, const at::Tensor& in,
                     const std::vector<std::int64_t>& in_counts, const CallRecord& call) override {
    const at::Tensor copy = up(out);
    ForwardingCommunicator::do_all_to_all(copy, out_counts, up(in), in_counts, call);
    out.copy_(copy);
  }
  void do_send(const at::Tensor& tensor, int to, const CallRecord& call) override {
    ForwardingCommunicator::do_send(up(tensor), to, call);
  }
  void do_recv(const at::Tensor& tensor, int from, const CallRecord& call) override {
    const at::Tensor copy = up(tensor);
    ForwardingCommunicator::do_recv(copy, from, call);
    tensor.copy_(copy);
  }
  std::unique_ptr<Communicator> do_split(const std::vector<int>& ranks, const CallRecord&) override {
    return std::make_unique<DeviceAdapter>(inner_->split(ranks), device_);
  }

  std::unique_ptr<Communicator> inner_;
  at::Device device_;
  TorchMemory memory_;  // the CPU's
};

}  // namespace zero
