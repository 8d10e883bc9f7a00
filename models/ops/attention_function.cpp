#include "models/ops/attention_function.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/activity_clock.h"
#include "models/ops/backends.h"
#include "models/ops/kernels/attention_kernels.h"
#include "models/ops/row_dispatch.h"
#include "models/ops/workspaces.h"

namespace zero {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Which tokens each token of a row attends to, as kernels read it: those from `first` to itself, without its gap.
struct SeenTokens {
  at::Tensor all;  // [3, B, T] int32: the first tokens, the gaps' begins and their ends; [1, B, T] without gaps

  const std::int32_t* first() const { return at_plane(0); }
  const std::int32_t* gaps() const { return all.defined() && all.size(0) == 3 ? at_plane(1) : nullptr; }

 private:
  const std::int32_t* at_plane(std::int64_t plane) const {
    if (!all.defined() || all.is_meta()) return nullptr;
    return all.const_data_ptr<std::int32_t>() + plane * all.size(1) * all.size(2);
  }
};

/// A run of tokens with one number in a row.
struct Run {
  std::int32_t number = 0;
  std::int32_t begin = 0, end = 0;
};

const Run* trunk_of_document(const std::vector<Run>& runs, std::int32_t document) {
  for (const Run& run : runs)
    if (is_trunk(run.number) && (run.number == trunk_of(document) || run.number == trunk_of(document - 1))) return &run;
  return nullptr;
}

/// Fills one row of first tokens, gap begins and gap ends. Returns false if a document continues after another one, or
/// if first tokens do not ascend.
bool fill_row(const std::int32_t* document, std::int64_t T, std::int32_t* first, std::int32_t* begin,
              std::int32_t* end) {
  std::vector<Run> runs;
  for (std::int64_t t = 0; t < T; ++t) {
    const std::int32_t here = document[t];
    if (t > 0 && here == document[t - 1] && here != -1) {
      first[t] = first[t - 1], begin[t] = begin[t - 1], end[t] = end[t - 1];
      ++runs.back().end;
      continue;
    }
    const auto is_same = [&](const Run& run) { return run.number == here; };
    if (here != -1 && std::any_of(runs.begin(), runs.end(), is_same)) return false;
    const auto place = static_cast<std::int32_t>(t);
    const Run* const trunk = here >= 0 ? trunk_of_document(runs, here) : nullptr;
    first[t] = trunk ? trunk->begin : place, begin[t] = trunk ? trunk->end : 0, end[t] = trunk ? place : 0;
    if (t > 0 && first[t] < first[t - 1]) return false;
    runs.push_back({here, place, place + 1});
  }
  return true;
}

/// None if the kernels do not support these documents.
std::optional<SeenTokens> seen_in_documents(const at::Tensor& documents) {
  const at::Tensor numbers = documents.contiguous();
  const std::int64_t B = numbers.size(0), T = numbers.size(1);
  if (numbers.is_meta()) return SeenTokens{at::empty({1, B, T}, numbers.options())};
  const SeenTokens seen{at::empty({3, B, T}, numbers.options())};
  bool gaps = false;
  for (std::int64_t b = 0; b < B; ++b) {
    const std::int32_t* const document = numbers.const_data_ptr<std::int32_t>() + b * T;
    std::int32_t* const mine = seen.all.data_ptr<std::int32_t>() + b * T;
    if (!fill_row(document, T, mine, mine + B * T, mine + 2 * B * T)) return std::nullopt;
    gaps = gaps || std::any_of(document, document + T, is_trunk);
  }
  if (!gaps) return SeenTokens{seen.all.narrow(0, 0, 1).clone()};
  return seen;
}

/// None if the kernels do not support these documents. Undefined if every token sees its row from the beginning.
std::optional<SeenTokens> seen_tokens(const at::Tensor& qkv, const AttentionShape& shape, const Batch& batch) {
  SeenTokens seen;
  if (batch.documents.defined()) {
    const std::optional<SeenTokens> found = seen_in_documents(batch.documents);
    if (!found) return std::nullopt;
    seen = *found;
  }
  const std::int64_t B = qkv.size(0), T = qkv.size(1);
  if (shape.window <= 0 || shape.window >= T) return seen;
  const at::Tensor nearest =
      at::arange(T, qkv.options().dtype(at::kInt)).sub_(shape.window - 1).clamp_min_(0).expand({1, B, T});
  if (!seen.all.defined()) return SeenTokens{nearest.contiguous()};
  const at::Tensor first = seen.all.narrow(0, 0, 1);
  first.copy_(at::maximum(first, nearest));
  return seen;
}

/// Rotates q and k of every token in place.
template <class T>
void rotate_in_place(const at::Tensor& rows, const AttentionShape& shape, const Rotary::Table& table,
                     const at::Tensor& positions, float direction) {
  const std::int64_t length = rows.size(1), width = rows.size(2), half = shape.head_dim / 2;
  if (rows.is_meta()) return;
  const std::int64_t* position = positions.defined() ? positions.const_data_ptr<std::int64_t>() : nullptr;
  by_rows(rows, rows.size(0) * length, width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t angle = (position ? position[t] : t % length) * half;
      kernels::row_kernels<T>().rotate({data_of<T>(rows) + t * width, read_of<float>(table.cos) + angle,
                                        read_of<float>(table.sin) + angle, shape.heads + shape.kv_heads, half},
                                       direction);
    }
  });
}

template <class T>
using Pass = void (*)(const kernels::AttentionProblem<T>&, std::int64_t, std::int64_t, void*);

template <class T>
void for_every_head(const at::Tensor& qkv, const kernels::AttentionProblem<T>& problem, Pass<T> pass) {
  const std::int64_t bytes =
      static_cast<std::int64_t>(kernels::attention_kernels<T>()->workspace_bytes(problem.length, problem.head_dim));
  const Workspaces workspaces(at::get_num_threads(), bytes, qkv);
  if (qkv.is_meta()) return;
  const std::int64_t work = problem.length * problem.length * problem.head_dim * problem.heads / problem.kv_heads;
  const std::int64_t grain = std::max<std::int64_t>(
      1, (std::int64_t{1} << 19) / std::max<std::int64_t>(1, work));  // keep small work on one thread
  at::parallel_for(0, qkv.size(0) * problem.kv_heads, grain, [&](std::int64_t begin, std::int64_t end) {
    void* const mine = workspaces[at::get_thread_num()];
    for (std::int64_t i = begin; i < end; ++i) pass(problem, i / problem.kv_heads, i % problem.kv_heads, mine);
  });
}

/// The tokens' positions, and what they see; either may be undefined.
struct Places {
  at::Tensor positions;  // [B, T] int64
  SeenTokens seen;
};

class AttentionFunction : public torch::autograd::Function<AttentionFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv, const AttentionShape& shape,
                            const Rotary::Table& table, const Places& places, const HeadDropout& dropout) {
    const at::Tensor& positions = places.positions;
    const std::int64_t B = qkv.size(0), T = qkv.size(1);
    const at::Tensor out = at::empty({B, T, shape.heads * shape.head_dim}, qkv.options());
    const at::Tensor lse = at::empty({B, shape.heads, T}, qkv.options().dtype(at::kFloat));
    with_kernel_type(qkv.scalar_type(), [&]<class E>(E) {
      rotate_in_place<E>(qkv, shape, table, positions, 1);
      for_every_head<E>(qkv, problem<E>(qkv, shape, places.seen, out, lse, dropout),
                        kernels::attention_kernels<E>()->forward);
    });
    torch::autograd::impl::bump_version(qkv);  // invalidates copies saved for backward
    context->save_for_backward({qkv, out, lse, positions, places.seen.all, table.cos, table.sin});
    context->saved_data["heads"] = shape.heads;
    context->saved_data["kv_heads"] = shape.kv_heads;
    context->saved_data["head_dim"] = shape.head_dim;
    context->saved_data["scale"] = shape.scale;
    context->saved_data["dropout"] = dropout.share;
    context->saved_data["seed"] = static_cast<std::int64_t>(dropout.seed);
    context->saved_data["first_sample"] = dropout.first_sample;
    context->saved_data["first_head"] = dropout.first_head;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    refuse_second_derivative("zero::attention");
    const ActivityScope scope(Activity::attention);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &qkv = saved[0], dout = grads[0].contiguous(), dqkv = at::empty_like(qkv);
    const AttentionShape shape{context->saved_data["heads"].toInt(), context->saved_data["kv_heads"].toInt(),
                               context->saved_data["head_dim"].toInt(),
                               0,  // saved[4] has the window
                               context->saved_data["scale"].toDouble()};
    const HeadDropout dropout{context->saved_data["dropout"].toDouble(),
                              static_cast<std::uint64_t>(context->saved_data["seed"].toInt()),
                              context->saved_data["first_sample"].toInt(), context->saved_data["first_head"].toInt()};
    with_kernel_type(qkv.scalar_type(), [&]<class E>(E) {
      auto whole = problem<E>(qkv, shape, SeenTokens{saved[4]}, saved[1], saved[2], dropout);
      whole.dout = read_of<E>(dout);
      whole.dqkv = data_of<E>(dqkv);
      for_every_head<E>(qkv, whole, kernels::attention_kernels<E>()->backward);
      rotate_in_place<E>(dqkv, shape, {saved[5], saved[6]}, saved[3], -1);
    });
    return {dqkv, {}, {}, {}, {}};
  }

 private:
  template <class E>
  static kernels::AttentionProblem<E> problem(const at::Tensor& qkv, const AttentionShape& shape,
                                              const SeenTokens& seen, const at::Tensor& out, const at::Tensor& lse,
                                              const HeadDropout& dropout) {
    const float scale =
        shape.scale > 0 ? static_cast<float>(shape.scale) : 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
    return {read_of<E>(qkv),
            seen.first(),
            seen.gaps(),
            data_of<E>(out),
            data_of<float>(lse),
            nullptr,
            nullptr,
            qkv.size(0),
            qkv.size(1),
            shape.heads,
            shape.kv_heads,
            shape.head_dim,
            scale,
            {dropout.seed, dropout.first_sample, dropout.first_head, dropout_threshold(dropout.share),
             kept_scale(dropout.share)}};
  }
};

bool kernels_take(const at::Tensor& qkv, const AttentionShape& shape) {
  bool take = false;
  with_kernel_type(qkv.scalar_type(), [&]<class E>(E) { take = kernels::attention_kernels<E>() != nullptr; });
  return take && shape.head_dim % 16 == 0 && shape.head_dim <= 256 && qkv.is_contiguous() && qkv.numel() > 0;
}

}  // namespace

at::Tensor kernel_attention(const at::Tensor& qkv, const AttentionShape& shape, const Rotary::Table& table,
                            const Batch& batch, const HeadDropout& dropout) {
  if (!kernels_take(qkv, shape)) return {};
  const std::optional<SeenTokens> seen = seen_tokens(qkv, shape, batch);
  if (!seen) return {};
  return AttentionFunction::apply(
      qkv, shape, table, Places{batch.positions.defined() ? batch.positions.contiguous() : at::Tensor(), *seen},
      dropout);
}

}  // namespace zero
