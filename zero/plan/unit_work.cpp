#include "zero/plan/unit_work.h"

#include <algorithm>
#include <cstddef>

#include "models/families/families.h"
#include "models/families/family.h"
#include "models/ops/head_rows.h"

namespace zero {
namespace {

/// A matrix of a unit, as [out, in].
struct Matrix {
  std::int64_t out = 0, in = 0;
  bool trained = true;
  std::vector<const Adapter*> adapters;
};

/// Seconds of a block's products in forward. Backward that runs them again leaves out a half's last product, since no
/// gradient depends on its result, unless a norm follows.
struct RepeatedProducts {
  double all = 0, attention = 0;                // of the block, and of its attention half
  double attention_result = 0, mlp_result = 0;  // the last product of each half

  void add(std::size_t index, double seconds) {  // in the order of the block's matrices
    all += seconds;
    mlp_result = seconds;
    if (index > 1) return;
    attention += seconds;  // queries, keys and values; attention's output
    attention_result = seconds;
  }
};

Matrix matrix_of(const Parameter& parameter) {
  const std::vector<std::int64_t> shape = parameter.shape();
  return parameter.input_first ? Matrix{shape[1], shape[0], parameter.trainable, {}}
                               : Matrix{shape[0], shape[1], parameter.trainable, {}};
}

bool is_adapter(const Unit& unit, int parameter) {
  return std::any_of(unit.adapters().begin(), unit.adapters().end(), [&](const Adapter& adapter) {
    return parameter == adapter.a || parameter == adapter.b || parameter == adapter.magnitude;
  });
}

std::vector<Matrix> matrices_of(const Unit& unit) {
  std::vector<Matrix> matrices;
  for (int i = 0; i < int(unit.parameters().size()); ++i) {
    const Parameter& parameter = unit.parameters()[std::size_t(i)];
    if (parameter.shape().size() != 2 || is_adapter(unit, i)) continue;
    matrices.push_back(matrix_of(parameter));
    for (const Adapter& adapter : unit.adapters())
      if (adapter.parameter == i) matrices.back().adapters.push_back(&adapter);
  }
  return matrices;
}

class Worker {
 public:
  Worker(const Model& model, const WorkSetting& setting, Kernels& kernels)
      : model_(model), setting_(setting), kernels_(kernels) {
    const Config& config = setting.config;
    tokens_ = std::max<std::int64_t>(1, setting.batch.local_batch_size * config.row_tokens() / context());
    own_tokens_ = std::max<std::int64_t>(1, tokens_ / tensor());
  }

  UnitWork unit(int index) const {
    Unit& unit = *model_.units[std::size_t(index)];
    UnitWork work;
    for (const Parameter& parameter : unit.parameters())
      (parameter.trainable ? work.trained : work.frozen) += double(parameter.numel());
    work.adapted = work.trained > 0 && work.frozen > 0;
    if (index == 0)
      add_embedding(work);
    else if (index + 1 == int(model_.units.size()))
      add_head(unit, work);
    else
      add_block(unit, index - 1, work);
    return work;
  }

 private:
  int context() const { return setting_.batch.mesh.context; }
  int tensor() const { return setting_.batch.mesh.tensor; }
  double element() const { return double(c10::elementSize(setting_.compute)); }
  const CheckpointingConfig& checkpoint() const { return setting_.config.activation_checkpoint; }

  double product(std::int64_t rows, const Matrix& matrix, ProductPass pass) const {
    return kernels_.product({rows, matrix.in, matrix.out, setting_.compute}, pass);
  }

  void add_adapter(const Unit& unit, const Matrix& matrix, const Adapter& adapter, UnitWork& work) const {
    const std::int64_t rank = unit.parameters()[std::size_t(adapter.a)].shape()[0];
    const Matrix a{rank, matrix.in, true, {}}, b{unit.parameters()[std::size_t(adapter.b)].shape()[0], rank, true, {}};
    for (const Matrix& factor : {a, b}) {
      work.forward.products += product(tokens_, factor, ProductPass::forward);
      work.backward.products += product(tokens_, factor, ProductPass::input_gradient) +
                                product(tokens_, factor, ProductPass::weight_gradient);
    }
    work.backward.products += product(tokens_, a, ProductPass::forward);
  }

  KernelSeconds attention(std::int64_t layer, bool backward) const {
    const ModelConfig& c = model_.config;
    const std::int64_t sharing = std::int64_t(tensor()) * context();
    AttentionWork work;
    work.length = setting_.config.training.seq_len;
    work.batch = setting_.batch.local_batch_size * setting_.config.row_tokens() / work.length;
    work.heads = std::max<std::int64_t>(1, (c.num_attention_heads + sharing - 1) / sharing);
    work.kv_heads = std::max<std::int64_t>(1, (c.num_key_value_heads + sharing - 1) / sharing);
    while (work.heads % work.kv_heads != 0) --work.kv_heads;  // a rank may hold parts of groups
    work.head_dim = c.head_dim;
    work.window = c.layer(layer).window;
    work.type = setting_.compute;
    return {0, kernels_.attention(work, backward), 0};
  }

  double rows(RowKernel kernel, std::int64_t count, std::int64_t width) const {
    return kernels_.rows(kernel, count, width, setting_.compute);
  }

  void add_block(const Unit& unit, std::int64_t layer, UnitWork& work) const {
    const ModelConfig& c = model_.config;
    const std::int64_t inner = c.intermediate_size / tensor();
    const std::vector<Matrix> matrices = matrices_of(unit);
    RepeatedProducts again;
    for (const Matrix& matrix : matrices) {
      const double forward = product(tokens_, matrix, ProductPass::forward);
      work.forward.products += forward;
      again.add(std::size_t(&matrix - matrices.data()), forward);
      work.backward.products += product(tokens_, matrix, ProductPass::input_gradient);
      if (matrix.trained) work.backward.products += product(tokens_, matrix, ProductPass::weight_gradient);
      for (const Adapter* adapter : matrix.adapters) add_adapter(unit, matrix, *adapter, work);
    }
    work.forward += attention(layer, false);
    work.backward += attention(layer, true);
    const double norm = rows(RowKernel::norm, own_tokens_, c.hidden_size),
                 activation = rows(RowKernel::activation, tokens_, inner);
    work.forward.other += 2 * norm + activation;
    work.backward.other += 2 * rows(RowKernel::norm_backward, own_tokens_, c.hidden_size) +
                           rows(RowKernel::activation_backward, tokens_, inner);
    const bool repeats_inputs = work.trained > 0 && !setting_.keeps_inputs;
    if (repeats_inputs) work.backward.other += 2 * norm + activation;
    work.axes = {.gathers = repeats_inputs ? 6 : 4, .scatters = 4, .swaps = 2};
    if (setting_.config.lora && setting_.config.lora->quantization != "none") {  // decoded before each use
      const double decode = kernels_.stream(2.6 * work.frozen);
      work.forward.other += decode;
      work.backward.other += decode;
    }
    if (!family_of(c.model_type).names.after_mlp.empty()) again.attention_result = again.mlp_result = 0;
    add_recomputation(layer, again, norm, work);
    if (checkpoint().mlp_tokens > 0 && checkpoint().mode != "full")
      work.backward.products += again.all - again.attention - again.mlp_result;
  }

  /// Adds the part of forward that backward runs again.
  void add_recomputation(std::int64_t layer, const RepeatedProducts& products, double norm, UnitWork& work) const {
    const std::string& mode = checkpoint().mode;
    KernelSeconds again;
    if (mode == "full" || (mode == "selective" && layer % checkpoint().every == 0)) {
      again = work.forward;
      again.products -= products.mlp_result;
      work.axes += {.gathers = 2, .scatters = 1, .swaps = 1};
    } else if (mode == "attention") {
      again = attention(layer, false);
      again.products += products.attention - products.attention_result;
      again.other += norm;
      work.axes += {.gathers = 1, .swaps = 1};
    }
    work.backward += again;
  }

  void add_embedding(UnitWork& work) const {
    const double bytes = element() * double(own_tokens_ * model_.config.hidden_size);
    work.forward.other += kernels_.stream(2 * bytes);
    if (work.trained > 0) work.backward.other += kernels_.stream(3 * bytes + element() * work.trained);
  }

  void add_head(Unit& unit, UnitWork& work) const {
    const ModelConfig& c = model_.config;
    Matrix matrix{c.vocab_size / tensor(), c.hidden_size, false, {}};
    for (const Matrix& own : matrices_of(unit)) matrix = own;
    for (const BorrowedParameter& borrowed : unit.borrowed()) {
      const Parameter& owner =
          model_.units[std::size_t(borrowed.owner_unit)]->parameters()[std::size_t(borrowed.owner_parameter)];
      matrix.trained = owner.trainable;
      // The owner's gradient gets this use's added.
      if (owner.trainable) work.backward.other += kernels_.stream(3 * element() * double(owner.numel()));
    }
    const std::int64_t most = setting_.gpu ? default_device_logits_bytes : default_logits_bytes;
    const std::int64_t chunk = std::min(
        tokens_, logits_chunk_rows(tokens_, matrix.out * std::int64_t(c10::elementSize(setting_.compute)), most));
    const double chunks = double(tokens_) / double(chunk);
    work.forward.products += chunks * product(chunk, matrix, ProductPass::forward);
    work.backward.products += chunks * product(chunk, matrix, ProductPass::input_gradient);
    if (matrix.trained) work.backward.products += chunks * product(chunk, matrix, ProductPass::weight_gradient);
    work.forward.other +=
        chunks * rows(RowKernel::loss, chunk, matrix.out) + rows(RowKernel::norm, own_tokens_, c.hidden_size);
    work.backward.other += rows(RowKernel::norm_backward, own_tokens_, c.hidden_size);
    if (matrix.trained && chunks > 1)  // the matrix's gradient is summed over chunks in fp32
      work.backward.other += kernels_.stream(chunks * 10 * double(matrix.out * matrix.in));
  }

  const Model& model_;
  const WorkSetting& setting_;
  Kernels& kernels_;
  std::int64_t tokens_ = 1, own_tokens_ = 1;  // of products; of norms, if ranks of the tensor axis share tokens
};

}  // namespace

AxisCalls& AxisCalls::operator+=(const AxisCalls& other) {
  gathers += other.gathers;
  scatters += other.scatters;
  swaps += other.swaps;
  return *this;
}

KernelSeconds& KernelSeconds::operator+=(const KernelSeconds& more) {
  products += more.products;
  attention += more.attention;
  other += more.other;
  return *this;
}

KernelSeconds KernelSeconds::operator*(double times) const {
  return {products * times, attention * times, other * times};
}

std::vector<UnitWork> work_of_units(const Model& model, const WorkSetting& setting, Kernels& kernels) {
  const Worker worker(model, setting, kernels);
  std::vector<UnitWork> works;
  for (int i = 0; i < int(model.units.size()); ++i) works.push_back(worker.unit(i));
  return works;
}

}  // namespace zero
