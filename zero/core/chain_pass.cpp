#include "zero/core/chain_pass.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/core/grad_mode.h>

#include <c10/util/ScopeExit.h>

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/memory_tracker.h"
#include "models/nn/recompute.h"

namespace zero {

// An exception ends the pass, which reshards the groups that are open at that time.
ChainPass::ChainPass(const ChainRun& run, const ForwardContext& context, MicroBatch micro, const at::Tensor& input,
                     const Head& head)
    : run_(run),
      groups_(run.groups),
      is_last_(run.is_last()),
      context_(context),
      micro_(micro),
      open_(run.chain.size(), 0),
      is_collected_(run.chain.size(), false) {
  context_.recompute_attention = run.recompute_attention;
  context_.keep_inputs = run.keep_inputs;
  context_.mlp_tokens = run.mlp_tokens;
  if (!context_.terms) context_.terms = &terms_;
  context_.context_ranks = groups_.context_ranks;
  context_.tensor_ranks = groups_.tensor_ranks;
  if (groups_.input_home && at::GradMode::is_enabled()) kept_.emplace(*groups_.input_home, int(run.chain.size()));
  close_others();
  groups_.under_way.push_back(this);
  auto ends = c10::make_scope_exit([this] { end(); });
  const CategoryScope scope(MemoryCategory::activations);
  if (groups_.gathers) groups_.gather_stream.follow_current();  // wait for the optimizer's new weights
  for (; spanning_open_ < spanning().size(); ++spanning_open_)
    spanning()[spanning_open_]->weights().unshard(Phase::forward);
  const int last = int(run.chain.size()) - 1;
  at::Tensor x = input;
  for (int u = run.units.begin; u < run.units.end; ++u) {
    open(u, Phase::forward);
    prefetch(u + 1, Phase::forward);
    x = enter_unit(x, *this, u);
    x = u == last && head ? head(*run.chain[u], x, context_) : run_unit(u, x);
    x = exit_unit(x, *this, u);
    if (u < last) close(u);  // backward needs the last unit first
    pause_between_units();
  }
  if (is_last_ && !head && at::GradMode::is_enabled() && context_.terms->sum().defined())
    x = x + context_.terms->sum().to(x.scalar_type());
  result_ = x;
  if (!at::GradMode::is_enabled()) close_all();
  ends.release();
}

ChainPass::~ChainPass() { end(); }

// A failure here (device or disk) was already raised elsewhere and is reported there.
void ChainPass::end() noexcept {
  if (std::exchange(ended_, true)) return;
  std::erase(groups_.under_way, static_cast<WeightUser*>(this));
  try {
    close_all();
    kept_.reset();
  } catch (const std::exception& error) {
    log_error(std::string("a pass could not let go of its weights: ") + error.what());
  }
}

bool ChainPass::recomputes(int unit) const {
  const bool block = unit > 0 && unit + 1 < int(run_.chain.size());
  return block && run_.recompute_every > 0 && (unit - 1) % run_.recompute_every == 0;
}

at::Tensor ChainPass::run_unit(int unit, const at::Tensor& x) {
  if (!recomputes(unit) || !at::GradMode::is_enabled()) return run_.chain[unit]->forward(x, context_);
  const RecomputedBody body = [this, unit](const at::Tensor& in) {
    ForwardContext context = context_;
    context.only_gradient = at::GradMode::is_enabled();
    return run_.chain[unit]->forward(in, context);
  };
  std::vector<at::Tensor> trainable;
  for (const Parameter& parameter : run_.chain[unit]->parameters())
    if (parameter.trainable) trainable.push_back(parameter.tensor);
  return recompute(body, x, trainable, place_of(unit));
}

InputPlace ChainPass::place_of(int unit) {
  if (!kept_) return {};
  return {[this, unit](const at::Tensor& x) { kept_->keep(unit, x); }, [this, unit] { return kept_->take(unit); }};
}

// Offloaded weights are brought in while the unit before them computes.
void ChainPass::open(int unit, Phase phase) {
  if (open_[unit] > 0) return;
  const std::vector<ParameterGroup*>& groups = groups_.needed_by[unit];
  for (; open_[unit] < groups.size(); ++open_[unit]) groups[open_[unit]]->weights().unshard(phase);
  const int next = phase == Phase::backward ? unit - 1 : unit + 1;
  if (!exists(next)) return;
  for (ParameterGroup* group : groups_.needed_by[next]) group->weights().fetch();
}

void ChainPass::prefetch(int unit, Phase phase) {
  if (!groups_.overlap || !exists(unit) || open_[unit] > 0) return;
  if (phase == Phase::backward && !run_.chain[unit]->backward_reads_weights()) return;
  for (ParameterGroup* group : groups_.needed_by[unit]) group->weights().prefetch(phase);
}

void ChainPass::close(int unit) {
  for (std::size_t g = 0; g < open_[unit]; ++g) groups_.needed_by[unit][g]->weights().reshard();
  open_[unit] = 0;
}

void ChainPass::close_units() {
  for (int u = run_.units.begin; exists(u); ++u) close(u);
  for (const auto& group : groups_.groups) group->weights().cancel_prefetch();
}

// A pass keeps the last unit open until its backward, and there are buffers for only one such unit.
void ChainPass::close_others() {
  for (WeightUser* other : groups_.under_way)
    if (other != this) other->pause();
}

void ChainPass::close_all() {
  close_units();
  for (std::size_t g = 0; g < spanning_open_; ++g) spanning()[g]->weights().reshard();
  spanning_open_ = 0;
}

void ChainPass::before_backward(int unit) {
  if (run_.chain[unit]->backward_reads_weights()) open(unit, Phase::backward);
  for (ParameterGroup* group : groups_.needed_by[unit])
    if (group->spec().trainable && group->spec().unit == unit && !expected_early(*group))
      group->expect_gradients(micro_);
  prefetch(unit - 1, Phase::backward);
  for (int ahead = 0; kept_ && ahead <= 2; ++ahead) kept_->fetch(unit - ahead);
  pause_between_units();
}

void ChainPass::after_backward(int unit) {
  if (is_collected_[unit]) return;
  is_collected_[unit] = true;
  const at::NoGradGuard no_grad;
  for (ParameterGroup* group : spanning())
    if (group->spec().trainable) group->collect_gradients(unit, micro_);
  for (ParameterGroup* group : groups_.needed_by[unit]) {
    if (!group->spec().trainable) continue;
    if (group->spec().unit != unit) {  // a borrowed group waits for its owner
      if (!exists(group->spec().unit)) group->set_aside_borrowed();
      continue;
    }
    group->collect_gradients(unit, micro_);
    group->reduce_gradients(micro_);
  }
  close(unit);
}

bool ChainPass::expected_early(const ParameterGroup& group) {
  return group.holds_full_gradient() || group.spec().spans_model();
}

std::vector<ParameterGroup*> ChainPass::trained() const {
  std::vector<ParameterGroup*> found = groups_.trained();
  std::erase_if(found, [&](const ParameterGroup* group) { return group->spec().run != run_.index; });
  return found;
}

void ChainPass::backward(double scale, const at::Tensor& of_result) {
  ZERO_CHECK(!ended_, "a pass has one backward, before weights change");
  auto in_step = groups_.in_step[std::size_t(run_.index)];
  ZERO_CHECK(micro_.first != in_step, "backward passes of a step begin with its first micro-batch");
  in_step = true;
  try {
    run_backward(scale, of_result);
  } catch (...) {
    for (ParameterGroup* group : groups_.trained()) group->drop_gradients();
    groups_.in_step.assign(groups_.in_step.size(), false);
    end();
    throw;
  }
  in_step = !micro_.last;
  end();
}

void ChainPass::run_backward(double scale, const at::Tensor& of_result) {
  const CategoryScope scope(MemoryCategory::activations);
  close_others();
  for (ParameterGroup* group : trained())
    if (expected_early(*group)) group->expect_gradients(micro_);
  if (is_last_) {
    // If the loss is not finite, the scale becomes NaN. Then no gradient is finite on any rank over which it is summed.
    const at::Tensor gradient = result_.detach().mul(0).add_(scale);
    context_.terms->begin_backward(gradient);
    result_.backward(gradient);
  } else if (of_result.defined()) {
    const at::ScalarType wide = at::toOpMathType(result_.scalar_type());
    const at::Tensor& terms = context_.terms->sum();  // a term that is not finite makes the gradients non-finite
    context_.terms->begin_backward(terms.defined() ? terms.to(wide).mul(0).add_(scale)
                                                   : at::full({}, scale, result_.options().dtype(wide)));
    result_.backward(of_result);
  }
  // Autograd does not call the exit of units whose input has no gradient.
  for (int u = run_.units.end - 1; u >= run_.units.begin; --u) after_backward(u);
  for (ParameterGroup* group : spanning())
    if (group->spec().trainable) group->reduce_gradients(micro_);
  close_all();
  if (micro_.last) groups_.reduce_stream.join();
}

}  // namespace zero
