#pragma once
// WireFormat: how the weights of a group are written at rest and on the wire. What is stored is what a gather moves.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "base/numbers/ggml_type.h"

namespace zero {

/// Where the weights of this rank come from when they are written for the first time.
struct WeightReader {
  int shard = 0;                     // the number of this rank's part; 0 where it holds all
  std::int64_t numel = 0;            // elements of it
  at::ScalarType type = at::kFloat;  // that elements are read in
  at::Device device = at::kCPU;      // that collectives run on
  /// Elements of the part from `begin` on, into host memory of any float type; padding as zeros.
  std::function<void(std::int64_t begin, const at::Tensor& values)> read;
  /// The same into blocks of ggml [ggml_bytes], as WeightSource::read_as; padding as zero bytes.
  std::function<void(std::int64_t begin, std::int64_t count, GgmlType type, const at::Tensor& blocks)> read_as;
  /// all <- the `own` of all ranks that hold parts, on the device. Collective; nothing where this rank holds all.
  std::function<void(const at::Tensor& all, const at::Tensor& own)> gather;
};

class WireFormat {
 public:
  virtual ~WireFormat() = default;

  /// Of the numbers at rest, how many of them a rank holds, and how many are the parts of all ranks together.
  virtual at::ScalarType type() const = 0;
  virtual std::int64_t rest_numel() const = 0;
  virtual std::int64_t all_numel() const = 0;
  std::int64_t rest_bytes() const { return rest_numel() * std::int64_t(c10::elementSize(type())); }
  std::int64_t all_bytes() const { return all_numel() * std::int64_t(c10::elementSize(type())); }

  /// True if the numbers are the weights themselves, so that they are gathered to where these are used.
  virtual bool is_plain() const = 0;
  /// The parts of all ranks to the flat vector of weights, which has padding. In the current stream.
  virtual void decode(const at::Tensor& all, const at::Tensor& full) const = 0;
  /// Writes what this rank holds. Collective.
  virtual void encode(const WeightReader& reader, const at::Tensor& rest) const = 0;
  /// The most that encode() holds beside it, in bytes of host memory.
  virtual std::int64_t encode_bytes() const = 0;
};

/// Elements that encode() reads at a time: bounds what loading adds to the peak.
inline constexpr std::int64_t encode_chunk = 4 << 20;

/// The weights in a number type of LibTorch.
class PlainFormat final : public WireFormat {
 public:
  PlainFormat(at::ScalarType type, std::int64_t rest_numel, std::int64_t all_numel)
      : type_(type), rest_numel_(rest_numel), all_numel_(all_numel) {}

  at::ScalarType type() const override { return type_; }
  std::int64_t rest_numel() const override { return rest_numel_; }
  std::int64_t all_numel() const override { return all_numel_; }
  bool is_plain() const override { return true; }
  void decode(const at::Tensor&, const at::Tensor&) const override {}
  void encode(const WeightReader& reader, const at::Tensor& rest) const override;
  std::int64_t encode_bytes() const override { return encode_chunk * std::int64_t(sizeof(float)); }

 private:
  at::ScalarType type_;
  std::int64_t rest_numel_, all_numel_;
};

}  // namespace zero
