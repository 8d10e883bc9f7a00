// PiSSA: PEFT's start, an unchanged model, and the plain adapter that it is saved as.
#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/families/families.h"
#include "models/formats/safetensors_writer.h"
#include "models/initial_weights.h"
#include "models/lora/adapted_weights.h"
#include "models/lora/pissa.h"
#include "models/nn/matmul_setting.h"
#include "tests/unit/models/small_model.h"
#include "tests/unit/temporary_folder.h"

namespace zero::test {
namespace pissa_test {

LoraOptions pissa(std::int64_t r = 3) {
  LoraOptions options;
  options.r = r;
  options.alpha = 5;
  options.init = LoraInit::pissa;
  options.target_modules = {"all-linear"};
  return options;
}

std::shared_ptr<PissaWeights> weights_of(const Model& adapted, const LoraOptions& options) {
  const auto base = std::make_shared<RandomWeights>(make_model(adapted.config), 3);
  return std::make_shared<PissaWeights>(
      std::make_shared<FreshAdapter>(base, std::make_shared<RandomWeights>(adapted, 3)), options);
}

at::Tensor logits(Model& model, WeightSource& weights) {
  hold_parameters(model, at::kFloat);
  load_parameters(model, weights);
  const Batch batch{at::arange(20, at::kLong).view({2, 10}), {}, {}, {}};
  return run_logits(model, batch);
}

/// One tensor "proj.weight".
class OneWeight : public WeightSource {
 public:
  explicit OneWeight(at::Tensor weight) : weight_(std::move(weight)) {}
  void check(const std::vector<TensorSpec>&) override {}
  void read(const TensorSpec&, std::int64_t begin, std::int64_t count, const at::Tensor& out) override {
    out.copy_(weight_.view({-1}).narrow(0, begin, count));
  }

 private:
  at::Tensor weight_;
};

// The sign of a pair of singular vectors is anybody's; the product is not.
TEST(Pissa, StartsAsPeftDoes) {
  const SafetensorsFile file(std::string(ZERO_TEST_DATA) + "/peft_linear.safetensors");
  PissaWeights weights(std::make_shared<OneWeight>(file.read("pissa.weight")), pissa());
  const std::string module = std::string(peft_prefix) + "proj";
  const TensorSpec weight{"proj.weight", {10, 6}}, a{module + ".lora_A.weight", {3, 6}},
      b{module + ".lora_B.weight", {10, 3}};
  weights.check({weight, a, b});
  const auto whole = [&](const TensorSpec& spec) {
    const at::Tensor value = at::empty({spec.numel()}, at::kFloat);
    weights.read(spec, 0, spec.numel(), value);
    return value.view(spec.shape);
  };
  EXPECT_LT(deviation(whole(a).abs(), file.read("pissa.a").abs()), 1e-5);
  EXPECT_LT(deviation(whole(b).abs(), file.read("pissa.b").abs()), 1e-5);
  EXPECT_LT(deviation(at::mm(whole(b), whole(a)), at::mm(file.read("pissa.b"), file.read("pissa.a"))), 1e-5);
  EXPECT_LT(deviation(whole(weight), file.read("pissa.residual")), 1e-5);
  const at::Tensor part = at::empty({11}, at::kDouble);
  weights.read(weight, 8, 11, part);
  EXPECT_LT(deviation(part, whole(weight).view({-1}).narrow(0, 8, 11)), 1e-6);
}

// Ranks read parts of the start, which are those of one rank to the bit where job.reproducible = "ranks" asks for it.
TEST(Pissa, PartsAreThoseOfTheWholeOnAnyThreads) {
  choose_deterministic_products();
  const int before = at::get_num_threads();
  const std::string module = std::string(peft_prefix) + "proj";
  const TensorSpec weight{"proj.weight", {1310, 204}}, a{module + ".lora_A.weight", {9, 204}},
      b{module + ".lora_B.weight", {1310, 9}};
  std::map<std::string, at::Tensor> expected;
  for (const int threads : {1, 2, 3, 4}) {
    at::set_num_threads(threads);
    PissaWeights weights(std::make_shared<OneWeight>(random(weight.shape, 1, at::kFloat)), pissa(9));
    weights.check({weight, a, b});
    for (const TensorSpec& spec : {a, b, weight})
      for (const std::int64_t parts : {1, 2, 3, 7}) {
        const at::Tensor found = at::empty({spec.numel()}, at::kFloat);
        for (std::int64_t part = 0; part < parts; ++part) {
          const std::int64_t begin = spec.numel() * part / parts, end = spec.numel() * (part + 1) / parts;
          weights.read(spec, begin, end - begin, found.narrow(0, begin, end - begin));
        }
        const at::Tensor& first = expected.emplace(spec.name, found).first->second;
        EXPECT_TRUE(at::equal(found, first)) << spec.name << ", " << parts << " parts, " << threads << " threads";
      }
  }
  at::set_num_threads(before);
  at::globalContext().setDeterministicAlgorithms(false, false);
}

TEST(Pissa, LeavesTheModelAsItWas) {
  Model adapted = make_model(small_config()), base = make_model(small_config());
  add_lora(adapted, pissa());
  RandomWeights original(base, 3);
  EXPECT_LT(deviation(logits(adapted, *weights_of(adapted, pissa())), logits(base, original)), 1e-5);
}

TEST(Pissa, IsSavedAsAPlainAdapterOverTheOriginalBase) {
  for (const bool rslora : {false, true}) {
    LoraOptions options = pissa();
    options.use_rslora = rslora;
    Model adapted = make_model(small_config());
    add_lora(adapted, options);
    const auto source = weights_of(adapted, options);
    const at::Tensor before = logits(adapted, *source);
    std::uint64_t seed = 1;
    for (auto& unit : adapted.units)
      for (Parameter& parameter : unit->parameters())
        if (parameter.trainable) parameter.tensor.add_(0.3 * random(parameter.shape(), seed++, at::kFloat));
    const Batch batch{at::arange(20, at::kLong).view({2, 10}), {}, {}, {}};
    const at::Tensor trained = run_logits(adapted, batch);
    ASSERT_GT(deviation(trained, before), 1e-2);

    TemporaryFolder folder;
    std::vector<SafetensorsSpec> specs;
    std::vector<at::Tensor> values;
    for (auto& unit : adapted.units)
      for (Parameter& parameter : unit->parameters()) {
        if (!parameter.trainable) continue;
        const TensorSpec& spec = parameter.parts[0];
        specs.push_back({spec.name, at::kFloat, PissaWeights::plain_shape(spec)});
        values.push_back(source->as_plain(spec, parameter.tensor));
        ASSERT_EQ(values.back().sizes(), at::IntArrayRef(specs.back().shape));
      }
    SafetensorsWriter writer(folder / "adapter_model.safetensors", specs);
    for (const at::Tensor& value : values) writer.append(value);
    writer.finish();
    write_adapter_config(folder.path(), plain_options(options), "base");

    Model plain = make_model(small_config());
    const auto saved = open_adapter(folder.path(), plain);
    EXPECT_EQ(saved->options().r, 6);
    add_lora(plain, saved->options());
    AdaptedWeights beside(std::make_shared<RandomWeights>(make_model(small_config()), 3), saved);
    EXPECT_LT(deviation(logits(plain, beside), trained), 1e-5) << rslora;
  }
}

TEST(Pissa, RefusesMoreVectorsThanThereAre) {
  Model adapted = make_model(small_config());
  add_lora(adapted, pissa(33));
  EXPECT_THROW(weights_of(adapted, pissa(33))->check(tensors_of(adapted)), InputError);
}

}  // namespace pissa_test
}  // namespace zero::test
