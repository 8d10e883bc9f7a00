// Every operator of the library `zero`, called by its name with arguments that it does not take. It refuses them with a
// sentence of its own, and the process lives on.
#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>

#include "base/error.h"

namespace zero::test {
namespace operator_arguments_test {

using Stack = std::vector<c10::IValue>;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

/// The operators that there are.
std::vector<std::string> operators() {
  std::vector<std::string> names;
  for (const c10::OperatorName& op : c10::Dispatcher::singleton().getAllOpNames())
    if (op.name.starts_with("zero::")) names.push_back(op.name);
  return names;
}

/// Arguments that an operator takes, of a type and on a device. Empty: there is no such operator.
Stack valid(const std::string& name, const at::TensorOptions& options) {
  const auto number_options = options.dtype(at::toOpMathType(c10::typeMetaToScalarType(options.dtype())));
  const auto f = [&](at::IntArrayRef shape) { return at::full(shape, 0.5, options); };
  const auto precise = [&](at::IntArrayRef shape) { return at::full(shape, 0.5, number_options); };
  const auto ids = [&](at::IntArrayRef shape) { return at::full(shape, 1, options.dtype(at::kLong)); };
  const auto small = [&](at::IntArrayRef shape) { return at::full(shape, 1, options.dtype(at::kInt)); };
  const std::map<std::string, Stack> all{
      {"rms_norm", {f({6, 16}), f({16}), 1e-5}},
      {"rms_norm_again", {f({6, 16}), f({16}), precise({6})}},
      {"rms_norm_backward", {f({6, 16}), f({6, 16}), f({16}), precise({6}), true, f({6, 16})}},
      {"swiglu", {f({6, 16})}},
      {"swiglu_backward", {f({6, 8}), f({6, 16})}},
      {"cross_entropy", {f({6, 16}), ids({6})}},
      {"cross_entropy_gradient_", {f({6, 16}), ids({6}), precise({})}},
      {"cross_entropy_backward_", {f({6, 16}), ids({6}), precise({6}), precise({})}},
      {"dropout_mask", {f({6, 16}), 0.4, 7, 0, 3, 2, 5}},
      {"embedding_backward", {f({6, 16}), ids({6}), 40}},
      {"trained_rows", {f({6, 16}), ids({6}), false}},
      {"logits_chunks", {f({40, 16}), 100, 1600}},
      {"add_product_", {precise({16, 5}), f({6, 16}), f({6, 5})}},
      {"matrix_product_into", {f({6, 5}), f({6, 16}), f({16, 5}), true}},
      {"matrix_product", {f({6, 16}), f({16, 5}), f({6, 5}), f({5})}},
      {"table_rows", {f({2, 3, 64}), ids({2, 3})}},
      {"attention",
       {f({2, 3, 64}), precise({4, 8}), precise({4, 8}), ids({2, 3}), small({2, 3}), small({3}), 2, f({2, 1, 3, 3}), 2,
        1, false, 0, 0.0, 0.25, 7, 0, 0}}};
  const auto found = all.find(name.substr(6));
  return found == all.end() ? Stack() : found->second;
}

/// Empty where the operator takes the arguments, else what it says.
std::string refusal(const std::string& name, Stack stack) {
  try {
    c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "").callBoxed(stack);
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("of another kind: ") + error.what();
  }
  return "";
}

enum class Kind { kind, device, size, value, layout, choice };
struct Change {
  Kind kind;
  std::string what;
  c10::IValue value;
};

void add_sizes(const at::Tensor& t, std::vector<Change>& changes) {
  const auto like = [&](const std::vector<std::int64_t>& shape) { return at::full(shape, 1, t.options()); };
  for (std::int64_t d = 0; d < t.dim(); ++d)
    for (const std::int64_t more : {-1, 1}) {
      std::vector<std::int64_t> shape = t.sizes().vec();
      shape[std::size_t(d)] += more;
      changes.push_back({Kind::size, more < 0 ? "shorter" : "longer", like(shape)});
    }
  if (t.dim() > 0) changes.push_back({Kind::size, "empty", like(std::vector<std::int64_t>(std::size_t(t.dim()), 0))});
}

std::vector<Change> changes_of(const at::Tensor& t) {
  const bool whole = c10::isIntegralType(t.scalar_type(), true);
  std::vector<Change> changes{
      {Kind::kind, "undefined", at::Tensor()},
      {Kind::kind, "a dimension more", t.unsqueeze(0)},
      {Kind::device, "on another device", t.is_meta() ? at::ones(t.sizes(), t.dtype()) : t.to(at::kMeta)},
      {Kind::layout, "overlapping", at::full({}, 1, t.options()).expand(t.sizes())}};
  if (t.dim() > 0) {
    changes.push_back({Kind::kind, "no dimensions", at::full({}, 1, t.options())});
    std::vector<std::int64_t> wide = t.sizes().vec();
    wide.back() *= 2;
    changes.push_back({Kind::layout, "strided", at::full(wide, 1, t.options()).slice(-1, 0, {}, 2)});
  }
  for (const at::ScalarType type : {at::kByte, at::kShort, at::kInt, at::kLong, at::kComplexFloat, at::kFloat8_e4m3fn})
    if (type != t.scalar_type())
      changes.push_back({Kind::kind, c10::toString(type), at::empty(t.sizes(), t.options().dtype(type))});
  if (!t.is_meta() && !whole && t.dim() > 0) changes.push_back({Kind::kind, "sparse", t.to_sparse()});
  if (!t.is_meta() && whole)
    for (const std::int64_t value : {std::int64_t{-1}, std::int64_t{-100}, largest})
      if (t.scalar_type() == at::kLong)
        changes.push_back({Kind::value, std::to_string(value), at::full_like(t, value)});
  add_sizes(t, changes);
  return changes;
}

std::vector<Change> changes_of(const c10::IValue& argument) {
  if (argument.isTensor()) return changes_of(argument.toTensor());
  std::vector<Change> changes;
  if (argument.isBool()) changes.push_back({Kind::choice, "otherwise", !argument.toBool()});
  if (argument.isInt())
    for (const std::int64_t value : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1} << 33, largest, -largest - 1})
      changes.push_back({value == -1 ? Kind::value : Kind::choice, std::to_string(value), value});
  if (argument.isDouble())
    for (const double value : {-1.0, double(NAN), double(INFINITY), 0.0, 1.0, 2.0})
      changes.push_back({value >= 0 && value <= 2 ? Kind::choice : Kind::value, std::to_string(value), value});
  return changes;
}

/// Changes that need no refusal: a length that no other argument shares, the device of the only tensor, numbers of any
/// value.
bool is_free(const std::string& name, std::size_t argument, Kind kind) {
  if (kind == Kind::layout || kind == Kind::choice) return true;
  const auto among = [&](const std::set<std::string>& names) { return names.contains(name.substr(6)); };
  if (argument == 0 && kind == Kind::device) return among({"swiglu", "dropout_mask", "logits_chunks"});
  if (argument == 0 && kind == Kind::size)
    return among({"rms_norm", "swiglu", "cross_entropy", "cross_entropy_gradient_", "cross_entropy_backward_",
                  "dropout_mask", "embedding_backward", "trained_rows", "logits_chunks", "table_rows"});
  if (kind == Kind::size) return name == "zero::attention" && argument == 5;  // spans
  if (kind == Kind::value)
    return (name == "zero::trained_rows" && argument == 1) || (name == "zero::dropout_mask" && argument == 2) ||
           (name == "zero::attention" && argument == 14);  // seeds
  return false;
}

class OperatorArguments : public ::testing::TestWithParam<std::tuple<at::ScalarType, at::DeviceType>> {
 protected:
  at::TensorOptions options() const {
    return at::TensorOptions().dtype(std::get<0>(GetParam())).device(std::get<1>(GetParam()));
  }
};

TEST_P(OperatorArguments, AreTakenOrRefusedWithASentence) {
  ASSERT_GE(operators().size(), 17u);
  for (const std::string& name : operators()) {
    const Stack known = valid(name, options());
    ASSERT_FALSE(known.empty()) << name << " needs a row in valid()";
    EXPECT_EQ(refusal(name, known), "") << name;
    for (std::size_t i = 0; i < known.size(); ++i)
      for (const Change& change : changes_of(known[i])) {
        Stack stack = valid(name, options());
        stack[i] = change.value;
        const std::string said = refusal(name, stack);
        const std::string call = name + " with argument " + std::to_string(i) + " " + change.what;
        EXPECT_TRUE(is_free(name, i, change.kind) || !said.empty()) << call << " is taken";
        EXPECT_THAT(said, ::testing::AnyOf("", ::testing::StartsWith(name + ": "))) << call;
      }
  }
}

// Autograd's recording comes before the kernels.
TEST_P(OperatorArguments, AreRefusedUnderAutogradToo) {
  for (const std::string& name : operators())
    for (std::size_t i = 0; i < valid(name, options()).size(); ++i)
      for (const Change& change : changes_of(valid(name, options())[i])) {
        Stack stack = valid(name, options());
        for (c10::IValue& value : stack)
          if (value.isTensor() && value.toTensor().is_floating_point()) value.toTensor().set_requires_grad(true);
        stack[i] = change.value;
        const std::string said = refusal(name, stack);
        EXPECT_THAT(said, ::testing::AnyOf("", ::testing::StartsWith(name))) << i << " " << change.what;
      }
}

INSTANTIATE_TEST_SUITE_P(All, OperatorArguments,
                         ::testing::Combine(::testing::Values(at::kFloat, at::kBFloat16, at::kHalf, at::kDouble),
                                            ::testing::Values(at::kCPU, at::kMeta)),
                         [](const auto& info) {
                           return std::string(c10::toString(std::get<0>(info.param))) +
                                  c10::DeviceTypeName(std::get<1>(info.param));
                         });

TEST(OperatorArguments, MayBeLeftOut) {
  for (const auto& [name, argument] : std::vector<std::pair<std::string, std::size_t>>{{"zero::rms_norm_backward", 5},
                                                                                       {"zero::matrix_product", 2},
                                                                                       {"zero::matrix_product", 3},
                                                                                       {"zero::table_rows", 1},
                                                                                       {"zero::attention", 3},
                                                                                       {"zero::attention", 5},
                                                                                       {"zero::attention", 7}}) {
    Stack stack = valid(name, at::kFloat);
    stack[argument] = c10::IValue();
    EXPECT_EQ(refusal(name, stack), "") << name << " " << argument;
  }
}

// A GPU's bias follows from the documents, and a CPU looks at those alone.
TEST(OperatorArguments, DocumentsMayBeLeftOutWhereThereIsNoBias) {
  Stack stack = valid("zero::attention", at::kFloat);
  stack[4] = c10::IValue();
  EXPECT_EQ(refusal("zero::attention", stack),
            "zero::attention: documents are missing, and must be given with a bias, which follows from them");
  stack[7] = c10::IValue();
  EXPECT_EQ(refusal("zero::attention", stack), "");
}

// The operator, the argument, what it is, and what it must be.
TEST(OperatorArguments, TheSentenceSaysWhatIsWanted) {
  const auto with = [](const std::string& name, std::size_t argument, const c10::IValue& value) {
    Stack stack = valid(name, at::kFloat);
    stack[argument] = value;
    return refusal(name, stack);
  };
  EXPECT_EQ(with("zero::rms_norm", 1, at::zeros({15})),
            "zero::rms_norm: weight is Float [15] on cpu, and must be Float, BFloat16, Half or Double [16] on cpu");
  EXPECT_EQ(with("zero::swiglu", 0, at::zeros({6, 15})),
            "zero::swiglu: the length of gate_up's rows is 15, and must be even: half gate, half up");
  EXPECT_EQ(with("zero::attention", 3, at::full({2, 3}, 4, at::kLong)),
            "zero::attention: positions are from 4 to 4, and must be from 0 to below 4, the rows of cos and sin");
  EXPECT_EQ(with("zero::attention", 4, at::ones({2, 4}, at::kInt)),
            "zero::attention: documents is Int [2, 4] on cpu, and must be Int [2, 3] on cpu");
  EXPECT_EQ(with("zero::dropout_mask", 1, 1.5),
            "zero::dropout_mask: dropout is 1.5, and must be at least 0, and below 1");
}

// A refused argument has not been written to, for autograd either.
TEST(OperatorArguments, ARefusalWritesNothing) {
  Stack stack = valid("zero::cross_entropy_backward_", at::kFloat);
  const at::Tensor logits = stack[0].toTensor(), before = logits.clone();
  stack[1] = at::full({6}, 16, at::kLong);
  const auto version = logits._version();
  EXPECT_NE(refusal("zero::cross_entropy_backward_", stack), "");
  EXPECT_EQ(logits._version(), version);
  EXPECT_TRUE(logits.equal(before));
}

// Sums of no terms are zeros.
TEST(OperatorArguments, MayBeEmpty) {
  for (const auto& [m, k, n] : {std::tuple(3, 0, 4), std::tuple(0, 3, 4), std::tuple(3, 4, 0), std::tuple(0, 0, 0)}) {
    Stack stack{at::ones({m, n}), at::ones({m, k}), at::ones({k, n}), false};
    EXPECT_EQ(refusal("zero::matrix_product_into", stack), "");
    EXPECT_TRUE(stack[0].toTensor().equal(at::full({m, n}, double(k))));
  }
}

}  // namespace operator_arguments_test
}  // namespace zero::test
