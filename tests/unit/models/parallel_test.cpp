// The types of activations: what may be handed to a layer. A forgotten collective does not compile.
#include <gtest/gtest.h>

#include <type_traits>

#include "models/decoder/half_ends.h"
#include "models/parallel/activations.h"

namespace zero {
namespace {

template <class X>
concept NormTakes = requires(const DecoderNorm& norm, const std::vector<Parameter>& parameters, const X& x) {
  norm.apply(parameters, x);
};
template <class X>
concept HalfBeginsWith = requires(const HalfInput& half, const ForwardContext& context, const X& x) {
  half.apply(x, context);
};
template <class Y, class X>
concept HalfEndsWith = requires(const HalfOutput& half, const ForwardContext& context, const Y& y, const X& x) {
  half.add(y, x, context);
};
template <class X>
concept Gathers = requires(const X& x, const TokenSplit& split) {
  gather_tokens(x, split);
};
template <class X>
concept Scatters = requires(const X& x, const TokenSplit& split) {
  scatter_tokens(x, split);
};

// Norms and the residual stream take whole rows of own tokens, and no parts of sums or rows.
static_assert(NormTakes<TokenPart>);
static_assert(!NormTakes<PartialSum> && !NormTakes<WidthPart> && !NormTakes<Replicated>);
static_assert(HalfBeginsWith<TokenPart>);
static_assert(!HalfBeginsWith<PartialSum> && !HalfBeginsWith<WidthPart> && !HalfBeginsWith<Replicated>);
// The product at the end of a half takes own columns, and adds to own tokens.
static_assert(HalfEndsWith<WidthPart, TokenPart>);
static_assert(!HalfEndsWith<TokenPart, TokenPart> && !HalfEndsWith<WidthPart, PartialSum> &&
              !HalfEndsWith<PartialSum, TokenPart>);
// Only own tokens are gathered, and only partial sums are summed.
static_assert(Gathers<TokenPart> && !Gathers<PartialSum> && !Gathers<WidthPart> && !Gathers<Replicated>);
static_assert(Scatters<PartialSum> && !Scatters<TokenPart> && !Scatters<WidthPart> && !Scatters<Replicated>);
// No type turns into another, or into a tensor, by itself.
static_assert(!std::is_convertible_v<PartialSum, TokenPart> && !std::is_convertible_v<WidthPart, TokenPart>);
static_assert(!std::is_convertible_v<PartialSum, at::Tensor>);

TEST(Activations, OnOneRankNothingChanges) {
  const at::Tensor x = at::arange(6, at::kDouble).view({1, 3, 2});
  EXPECT_TRUE(gather_tokens(TokenPart{x}, TokenSplit()).x.is_same(x));
  EXPECT_TRUE(scatter_tokens(PartialSum{x}, TokenSplit()).x.is_same(x));
  EXPECT_TRUE(sum_parts(x, TokenSplit()).is_same(x));
}

}  // namespace
}  // namespace zero
