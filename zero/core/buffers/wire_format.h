#pragma once
// WireFormat: the format of a group's weights at rest and on the wire. A gather moves the stored bytes as they are.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "base/numbers/ggml_type.h"

namespace zero {

/// The source of this rank's weights when they are written for the first time.
struct WeightReader {
  int shard = 0;                     // index of this rank's part; 0 if it holds all
  std::int64_t numel = 0;            // elements of the part
  at::ScalarType type = at::kFloat;  // type in which the part is read
  at::Device device = at::kCPU;      // where collectives run
  /// Reads elements of the part, starting at `begin`, into host memory of any float type. Padding reads as zeros.
  std::function<void(std::int64_t begin, const at::Tensor& values)> read;
  /// Reads the same elements into ggml blocks [ggml_bytes], as WeightSource::read_as does. Padding reads as zero bytes.
  std::function<void(std::int64_t begin, std::int64_t count, GgmlType type, const at::Tensor& blocks)> read_as;
  /// Gathers `own` from all ranks that hold parts into `all`, on the device. Does nothing if this rank holds all.
  /// Collective.
  std::function<void(const at::Tensor& all, const at::Tensor& own)> gather;
};

class WireFormat {
 public:
  virtual ~WireFormat() = default;

  /// The values at rest: their type, their count on one rank, and their count on all ranks together.
  virtual at::ScalarType type() const = 0;
  virtual std::int64_t rest_numel() const = 0;
  virtual std::int64_t all_numel() const = 0;
  std::int64_t rest_bytes() const { return rest_numel() * std::int64_t(c10::elementSize(type())); }
  std::int64_t all_bytes() const { return all_numel() * std::int64_t(c10::elementSize(type())); }

  /// Returns true if the values at rest are the weights themselves. A gather then writes them directly where they are
  /// used.
  virtual bool is_plain() const = 0;
  /// Decodes the parts of all ranks into the flat vector of weights, padding included, in the current stream.
  virtual void decode(const at::Tensor& all, const at::Tensor& full) const = 0;
  /// Reads this rank's weights and encodes them into `rest`, the memory that this rank holds. Collective.
  virtual void encode(const WeightReader& reader, const at::Tensor& rest) const = 0;
  /// Upper bound of the host memory that encode() allocates, in bytes.
  virtual std::int64_t encode_bytes() const = 0;
};

/// Number of elements that encode() reads at a time. This bounds how much loading adds to peak memory.
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
