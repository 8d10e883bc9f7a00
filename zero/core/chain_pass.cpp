#include "zero/core/chain_pass.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <c10/util/ScopeExit.h>

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/memory_tracker.h"
#include "models/nn/recompute.h"

namespace zero {
namespace {

/// All or none.
void unshard_all(const std::vector<ParameterGroup*>& groups, Phase phase) {
  std::size_t done = 0;
  auto undo = c10::make_scope_exit([&] {
    while (done > 0) groups[--done]->weights().reshard();
  });
  for (; done < groups.size(); ++done) groups[done]->weights().unshard(phase);
  undo.release();
}

}  // namespace

ChainPass::ChainPass(UnitGroups& groups, const ChainRun& run, const ForwardContext& context, MicroBatch micro,
                     const Head& head)
    : groups_(groups),
      run_(run),
      context_(context),
      micro_(micro),
      is_open_(run.chain.size(), false),
      is_collected_(run.chain.size(), false) {
  context_.recompute_attention = run.recompute_attention;
  context_.keep_inputs = run.keep_inputs;
  if (!context_.terms) context_.terms = &terms_;
  context_.context_ranks = groups.context_ranks;
  context_.tensor_ranks = groups.tensor_ranks;
  close_others();
  groups_.under_way.push_back(this);
  try {
    this->run(head);
  } catch (...) {
    end();
    throw;
  }
}

ChainPass::~ChainPass() { end(); }

// What fails here has failed before, of a device or a disk, and is told by whatever waits for it.
void ChainPass::end() noexcept {
  if (std::exchange(ended_, true)) return;
  std::erase(groups_.under_way, static_cast<WeightUser*>(this));
  try {
    close_all();
  } catch (const std::exception& error) {
    log_error(std::string("a pass could not let go of its weights: ") + error.what());
  }
}

void ChainPass::run(const Head& head) {
  const CategoryScope scope(MemoryCategory::activations);
  if (groups_.gathers) groups_.gather_stream.follow_current();  // the optimizer's new weights
  unshard_all(groups_.spanning, Phase::forward);
  spanning_open_ = true;
  const int last = int(run_.chain.size()) - 1;
  at::Tensor x;
  for (int u = 0; u <= last; ++u) {
    open(u, Phase::forward);
    prefetch(u + 1, Phase::forward);
    x = enter_unit(x, *this, u);
    x = u == last && head ? head(*run_.chain[u], x, context_) : run_unit(u, x);
    x = exit_unit(x, *this, u);
    if (u < last) close(u);  // backward needs the last one first
  }
  if (!head && at::GradMode::is_enabled() && context_.terms->sum().defined())
    x = x + context_.terms->sum().to(x.scalar_type());
  result_ = x;
  if (!at::GradMode::is_enabled()) close_all();
}

bool ChainPass::recomputes(int unit) const {
  const bool block = unit > 0 && unit + 1 < int(run_.chain.size());
  return block && run_.recompute_every > 0 && (unit - 1) % run_.recompute_every == 0;
}

at::Tensor ChainPass::run_unit(int unit, const at::Tensor& x) {
  const RecomputedBody body = [this, unit](const at::Tensor& in) { return run_.chain[unit]->forward(in, context_); };
  if (!recomputes(unit) || !at::GradMode::is_enabled()) return body(x);
  std::vector<at::Tensor> trainable;
  for (const Parameter& parameter : run_.chain[unit]->parameters())
    if (parameter.trainable) trainable.push_back(parameter.tensor);
  return recompute(body, x, trainable);
}

// Weights that live elsewhere are brought to this rank while the unit before them is at work.
void ChainPass::open(int unit, Phase phase) {
  if (is_open_[unit]) return;
  unshard_all(groups_.needed_by[unit], phase);
  is_open_[unit] = true;
  const int next = phase == Phase::backward ? unit - 1 : unit + 1;
  if (!exists(next)) return;
  for (ParameterGroup* group : groups_.needed_by[next]) group->weights().fetch();
}

void ChainPass::prefetch(int unit, Phase phase) {
  if (!groups_.overlap || !exists(unit) || is_open_[unit]) return;
  if (phase == Phase::backward && !run_.chain[unit]->backward_reads_weights()) return;
  for (ParameterGroup* group : groups_.needed_by[unit]) group->weights().prefetch(phase);
}

void ChainPass::close(int unit) {
  if (!is_open_[unit]) return;
  for (ParameterGroup* group : groups_.needed_by[unit]) group->weights().reshard();
  is_open_[unit] = false;
}

void ChainPass::close_units() {
  for (int u = 0; exists(u); ++u) close(u);
  for (const auto& group : groups_.groups) group->weights().cancel_prefetch();
}

// Between its forward and its backward a pass keeps the last unit, for which there are buffers once.
void ChainPass::close_others() {
  for (WeightUser* other : groups_.under_way)
    if (other != this) other->pause();
}

void ChainPass::close_all() {
  close_units();
  if (spanning_open_)
    for (ParameterGroup* group : groups_.spanning) group->weights().reshard();
  spanning_open_ = false;
}

void ChainPass::before_backward(int unit) {
  if (run_.chain[unit]->backward_reads_weights()) open(unit, Phase::backward);
  prefetch(unit - 1, Phase::backward);
}

void ChainPass::after_backward(int unit) {
  if (is_collected_[unit]) return;
  is_collected_[unit] = true;
  const at::NoGradGuard no_grad;
  for (ParameterGroup* group : groups_.spanning)
    if (group->spec().trainable) group->collect_gradients(unit, micro_);
  for (ParameterGroup* group : groups_.needed_by[unit]) {
    if (!group->spec().trainable || group->spec().unit != unit) continue;  // a borrowed group waits for its owner
    group->collect_gradients(unit, micro_);
    group->reduce_gradients(micro_);
  }
  close(unit);
}

void ChainPass::backward(double scale) {
  ZERO_CHECK(!ended_, "a pass has one backward, before weights change");
  ZERO_CHECK(micro_.first != groups_.in_step, "backward passes of a step begin with its first micro-batch");
  groups_.in_step = true;
  try {
    run_backward(scale);
  } catch (...) {
    for (ParameterGroup* group : groups_.trained()) group->drop_gradients();
    groups_.in_step = false;
    end();
    throw;
  }
  groups_.in_step = !micro_.last;
  end();
}

void ChainPass::run_backward(double scale) {
  const CategoryScope scope(MemoryCategory::activations);
  close_others();
  for (ParameterGroup* group : groups_.trained()) group->expect_gradients(micro_);
  // The scale of a loss that is not finite is NaN: no gradient then is, on any rank that it is summed over.
  const at::Tensor gradient = result_.detach().mul(0).add_(scale);
  context_.terms->begin_backward(gradient);
  result_.backward(gradient);
  // Units whose input carries no gradient are not told by autograd that they are done.
  for (int u = int(run_.chain.size()) - 1; u >= 0; --u) after_backward(u);
  for (ParameterGroup* group : groups_.spanning)
    if (group->spec().trainable) group->reduce_gradients(micro_);
  close_all();
  if (micro_.last) groups_.reduce_stream.join();
}

}  // namespace zero
