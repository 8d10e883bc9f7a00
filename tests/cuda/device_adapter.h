#pragma once
// DeviceAdapter: gives a communicator of CUDA tensors the CPU tensors of the conformance suite, keeping what overlaps.
#include <ATen/ATen.h>

#include "comm/communicator.h"

namespace zero {

class DeviceAdapter final : public Communicator {
 public:
  DeviceAdapter(std::unique_ptr<Communicator> inner, at::Device device)
      : Communicator(inner->rank(), inner->size()), inner_(std::move(inner)), device_(device) {}

 private:
  at::Tensor up(const at::Tensor& t) const { return t.to(device_); }
  /// The shard as a slice of the copy of `full` where it is one of the original.
  at::Tensor part_of(const at::Tensor& full, const at::Tensor& copy, const at::Tensor& shard) const {
    const char* own =
        static_cast<const char*>(full.const_data_ptr()) + static_cast<std::size_t>(rank()) * shard.nbytes();
    const bool inside =
        shard.nbytes() > 0 && shard.const_data_ptr() == own && shard.scalar_type() == full.scalar_type();
    return inside ? copy.narrow(0, rank() * shard.numel(), shard.numel()) : up(shard);
  }
  static ReduceOptions asked(ReduceOptions options) {
    if (c10::isIntegralType(options.sum_type, false)) options.sum_type = at::kFloat;
    return options;
  }

  void do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) override {
    const at::Tensor copy = up(full);
    inner_->all_gather_into(copy, part_of(full, copy, shard), call.tag);
    full.copy_(copy);
  }
  void do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                         const CallRecord& call) override {
    const at::Tensor copy = up(full), part = part_of(full, copy, shard);
    inner_->reduce_scatter(part, copy, asked(options), call.tag);
    shard.copy_(part);
  }
  void do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) override {
    const at::Tensor copy = up(tensor);
    inner_->all_reduce(copy, asked(options), call.tag);
    tensor.copy_(copy);
  }
  void do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) override {
    const at::Tensor copy = up(tensor);
    inner_->broadcast(copy, root, call.tag);
    tensor.copy_(copy);
  }
  void do_send(const at::Tensor& tensor, int to, const CallRecord& call) override {
    inner_->send(up(tensor), to, call.tag);
  }
  void do_recv(const at::Tensor& tensor, int from, const CallRecord& call) override {
    const at::Tensor copy = up(tensor);
    inner_->recv(copy, from, call.tag);
    tensor.copy_(copy);
  }
  void do_barrier(const CallRecord& call) override { inner_->barrier(call.tag); }
  std::unique_ptr<Communicator> do_split(int color, int key, const CallRecord&) override {
    return std::make_unique<DeviceAdapter>(inner_->split(color, key), device_);
  }

  std::unique_ptr<Communicator> inner_;
  at::Device device_;
};

}  // namespace zero
