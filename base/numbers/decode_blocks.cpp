#include "base/numbers/decode_blocks.h"

#include "base/error.h"
#include "base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/numbers/decode_blocks.cpp"
#include <hwy/foreach_target.h>

#include "base/numbers/ggml_groups.inl"

HWY_BEFORE_NAMESPACE();
namespace zero::HWY_NAMESPACE {
namespace {

using namespace zero::kernels::HWY_NAMESPACE;

template <class Type, class T>
void decode_to(const std::uint8_t* from, std::int64_t count, T* to) {
  for (std::int64_t b = 0; b < count / Type::values; ++b) {
    const Type block(from + b * Type::bytes);
    repeat<Type::groups>([&](auto g) ZERO_LAMBDA {
      V w[Type::pieces];
      block.template decode<g>(w);
      repeat<Type::pieces>(
          [&](auto k) ZERO_LAMBDA { store(to + b * Type::values + Type::piece_of(g, k) * width, w[k], width); });
    });
  }
}

/// Calls f(Type*) with the struct of a type.
template <class F>
void with_type(GgmlType type, const F& f) {
  switch (type) {
#define BLOCK_TYPE(type, Layout) \
  case GgmlType::type:           \
    return f(static_cast<const Layout*>(nullptr));
#include "base/numbers/ggml_block_types.inl"
    case GgmlType::f16:
      return f(static_cast<const Halves<Fp16>*>(nullptr));
    case GgmlType::bf16:
      return f(static_cast<const Halves<Bf16>*>(nullptr));
    default:
      throw InternalError("this type has no blocks");
  }
}

void decode_here(GgmlType type, const std::uint8_t* from, std::int64_t count, Number number, void* to) {
  with_type(type, [&]<class Type>(const Type*) {
    if (number == Number::fp32)
      decode_to<Type>(from, count, static_cast<float*>(to));
    else
      decode_to<Type>(from, count, static_cast<Bf16*>(to));
  });
}

}  // namespace
}  // namespace zero::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zero {

HWY_EXPORT(decode_here);

void decode_blocks(GgmlType type, const std::uint8_t* blocks, std::int64_t count, Number number, void* values) {
  HWY_DYNAMIC_DISPATCH(decode_here)(type, blocks, count, number, values);
}

}  // namespace zero
#endif
