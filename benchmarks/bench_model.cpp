// zero_bench model: one rank's forward and backward without an engine, and the cost of each part of a block. It
// compares them with the same parts built from LibTorch's operations.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "benchmarks/benchmarks.h"
#include "models/families/families.h"
#include "models/model.h"
#include "models/nn/matmul_setting.h"
#include "models/ops/attention.h"
#include "models/ops/cross_entropy.h"
#include "models/ops/rms_norm.h"
#include "models/ops/swiglu.h"

namespace zero {

namespace {

struct Options {
  std::string preset = "llama-110m", type = "bf16";
  std::int64_t batch = 2, length = 256;
  int threads = 1, repeats = 5;
};

/// The shortest of several calls after a warm-up call, in milliseconds.
template <class F>
double best_ms(int repeats, F&& f) {
  using Clock = std::chrono::steady_clock;
  f();
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = Clock::now();
    f();
    best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  return best;
}

void fill(Model& model) {
  for (auto& unit : model.units) {
    for (Parameter& p : unit->parameters()) {
      p.init == Init::ones ? p.tensor.fill_(1) : p.tensor.normal_(0, p.init_scale);
      p.tensor.set_requires_grad(true);
    }
    for (BorrowedParameter& b : unit->borrowed()) b.tensor.set_requires_grad(true);
  }
}

void step(Model& model, const Batch& batch, double& forward_ms) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  ForwardContext context;
  context.batch = &batch;
  at::Tensor x;
  for (auto& unit : model.units) x = unit->forward(x, context);
  forward_ms = std::min(forward_ms, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  std::vector<at::Tensor> leaves;
  for (auto& unit : model.units) {
    for (Parameter& p : unit->parameters()) leaves.push_back(p.tensor);
    for (BorrowedParameter& b : unit->borrowed()) leaves.push_back(b.tensor);
  }
  torch::autograd::grad({x / batch.ids.numel()}, leaves);
}

void line(const char* name, double own, double theirs) {
  std::printf("  %-34s %8.2f ms   LibTorch %8.2f ms\n", name, own, theirs);
}

void parts(const ModelConfig& c, const Options& o, at::ScalarType type) {
  const std::int64_t rows = o.batch * o.length;
  const at::TensorOptions options = at::TensorOptions().dtype(type);
  const at::Tensor x = at::randn({rows, c.hidden_size}, options), weight = at::ones({c.hidden_size}, options);
  const at::Tensor gate_up = at::randn({rows, 2 * c.intermediate_size}, options),
                   dy = at::randn({rows, c.intermediate_size}, options);
  std::puts("parts of one block, forward and backward:");
  const auto leaf = [](const at::Tensor& t) { return t.detach().set_requires_grad(true); };

  line("norm", best_ms(o.repeats, [&] { rms_norm_backward(x, x, weight, rms_norm(x, weight, 1e-5).rstd, true); }),
       best_ms(o.repeats, [&] {
         const at::Tensor input = leaf(x), w = leaf(weight), wide = input.to(at::kFloat);
         torch::autograd::grad({w * (wide * (wide.square().mean(-1, true) + 1e-5).rsqrt()).to(type)}, {input, w}, {x});
       }));
  line("SwiGLU",
       best_ms(o.repeats,
               [&] {
                 swiglu(gate_up);
                 swiglu_backward(dy, gate_up);
               }),
       best_ms(o.repeats, [&] {
         const at::Tensor input = leaf(gate_up);
         const auto halves = input.chunk(2, 1);
         torch::autograd::grad({at::silu(halves[0]) * halves[1]}, {input}, {dy});
       }));
  const AttentionShape shape{c.num_attention_heads, c.num_key_value_heads, c.head_dim};
  const at::Tensor qkv = at::randn({o.batch, o.length, shape.qkv_width()}, options);
  const at::Tensor dout = at::randn({o.batch, o.length, shape.heads * shape.head_dim}, options);
  Rotary rotary(c.head_dim, c.rope_theta, c.rope_scaling);
  const Rotary::Table table = rotary.table(o.length, type, at::kCPU);
  line("rotation and attention",
       best_ms(o.repeats,
               [&] {
                 const at::Tensor input = leaf(qkv);
                 torch::autograd::grad({attention(input, shape, rotary, {})}, {input}, {dout});
               }),
       best_ms(o.repeats, [&] {
         const at::Tensor input = leaf(qkv);
         const auto heads = input.view({o.batch, o.length, -1, c.head_dim})
                                .split_with_sizes({shape.heads, shape.kv_heads, shape.kv_heads}, 2);
         const at::Tensor y = at::scaled_dot_product_attention(
             rotate(heads[0], table, {}).transpose(1, 2), rotate(heads[1], table, {}).transpose(1, 2),
             heads[2].transpose(1, 2), {}, 0, true, {}, shape.heads != shape.kv_heads);
         torch::autograd::grad({y.transpose(1, 2).reshape(dout.sizes())}, {input}, {dout});
       }));
  const at::Tensor logits = at::randn({rows, c.vocab_size}, options),
                   targets = at::randint(c.vocab_size, {rows}, at::kLong);
  at::Tensor copy = logits.clone();
  line("cross-entropy (of the head)",
       best_ms(
           o.repeats,
           [&] { cross_entropy_backward_(copy, targets, cross_entropy(copy, targets).lse, at::ones({}, at::kFloat)); }),
       best_ms(o.repeats, [&] {
         const at::Tensor input = leaf(logits);
         torch::autograd::grad({at::cross_entropy_loss(input.to(at::kFloat), targets, {}, at::Reduction::Sum)},
                               {input});
       }));
}

}  // namespace

int bench_model(int argc, char** argv) {
  Options o;
  CLI::App app{"forward and backward of one rank, and its parts"};
  app.add_option("--preset", o.preset, "llama-tiny, llama-15m, llama-110m, tinyllama-1.1b");
  app.add_option("--dtype", o.type, "fp32 or bf16")->check(CLI::IsMember({"fp32", "bf16"}));
  app.add_option("--batch", o.batch, "sequences");
  app.add_option("--seq", o.length, "tokens of a sequence");
  app.add_option("--threads", o.threads, "threads");
  app.add_option("--repeats", o.repeats, "timed repeats; the shortest counts");
  if (const auto code = parse(app, argc, argv)) return *code;
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  at::set_num_threads(o.threads);
  std::puts(choose_matmul().c_str());

  const at::ScalarType type = o.type == "bf16" ? at::kBFloat16 : at::kFloat;
  Model model = make_model(preset_config(o.preset));
  hold_parameters(model, type);
  fill(model);
  const Batch batch{at::randint(model.config.vocab_size, {o.batch, o.length}, at::kLong),
                    at::randint(model.config.vocab_size, {o.batch, o.length}, at::kLong),
                    {},
                    {}};
  double forward = 1e30;
  const double whole = best_ms(o.repeats, [&] { step(model, batch, forward); });
  std::printf("%s %s, %lld x %lld tokens, %d threads: forward %.1f ms, forward and backward %.1f ms, %.0f tokens/s\n",
              o.preset.c_str(), o.type.c_str(), static_cast<long long>(o.batch), static_cast<long long>(o.length),
              o.threads, forward, whole, static_cast<double>(o.batch * o.length) / whole * 1e3);
  parts(model.config, o, type);
  return 0;
}

}  // namespace zero
