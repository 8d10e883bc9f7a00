#pragma once
// ParameterUnit: parameters that are used together. It owns no memory: the holder (an engine, or hold_parameters() for
// inference) sets each `tensor` to a view of a flat buffer.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/tensor_spec.h"

namespace zero {

/// A parameter's initial values if no weights are loaded.
enum class Init : std::uint8_t { normal, ones, zeros, kaiming_uniform };

/// One leaf tensor with which a unit computes. Its parts are tensors of the file, concatenated along dim 0 (q, k and v,
/// or gate and up), so that one matrix product suffices. An ordinary parameter has one part.
struct Parameter {
  std::vector<TensorSpec> parts;
  bool trainable = true;
  Init init = Init::normal;
  double init_scale = 0.02;  // normal: standard deviation; kaiming_uniform: bound
  at::Tensor tensor;         // [sum of dim 0 of the parts, the other dims], set by its holder
  bool given = false;        // a tensor of the user: the object stays the same and becomes a view of the group's memory
  double lr_scale = 1.0;     // multiplies the run's learning rate
  bool input_first = false;  // a projection that is stored [in, out]

  std::vector<std::int64_t> shape() const;
  std::int64_t numel() const;
};

/// A parameter of another unit that this unit uses too (tied embeddings). `tensor` is a leaf of its own that shares the
/// owner's storage. Its gradient is added to the owner's when the owner's gradient is complete.
struct BorrowedParameter {
  int owner_unit = 0;
  int owner_parameter = 0;
  at::Tensor tensor;
};

class ParameterUnit {
 public:
  explicit ParameterUnit(std::string name) : name_(std::move(name)) {}
  virtual ~ParameterUnit() = default;

  const std::string& name() const { return name_; }
  std::vector<Parameter>& parameters() { return parameters_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  std::vector<BorrowedParameter>& borrowed() { return borrowed_; }

 protected:
  std::vector<Parameter> parameters_;
  std::vector<BorrowedParameter> borrowed_;

 private:
  std::string name_;
};

}  // namespace zero
