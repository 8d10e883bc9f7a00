#include "zero/core/pipeline/pipeline.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/log.h"
#include "base/memory_tracker.h"
#include "comm/object_collectives.h"
#include "models/parallel/token_split.h"
#include "zero/core/pipeline/unit_deal.h"

namespace zero {

Pipeline::Pipeline(const KeptOptions& kept, const Chain& chain, UnitGroups& groups, const std::vector<UnitRun>& runs,
                   Mesh& mesh, const PipelineOptions& options, at::TensorOptions activations)
    : runs_(runs),
      groups_(groups),
      stages_(mesh.along(MeshAxis::pipeline)),
      options_(options),
      width_(chain.front()->parameters().front().parts.front().shape.back()),
      activations_(activations) {
  const std::vector<std::int64_t> costs = costs_of(chain);
  bool trains = false;
  for (int r = 0; r < int(runs.size()); ++r) {
    const UnitRun& run = runs[std::size_t(r)];
    trains_before_.push_back(trains);
    for (int u = run.begin; u < run.end; ++u)
      for (const Parameter& parameter : chain[std::size_t(u)]->parameters()) trains |= parameter.trainable;
    costs_.push_back(double(std::accumulate(costs.begin() + run.begin, costs.begin() + run.end, std::int64_t{0})));
    if (run.stage == stages_.rank())
      own_.emplace(r, ChainRun{kept, chain, groups, run, r, [&stages = stages_] { stages.poll(); }});
  }
}

const PipelineSchedule& Pipeline::schedule(std::int64_t micro_batches) {
  const auto known = schedules_.find(micro_batches);
  if (known != schedules_.end()) return known->second;
  PipelineSchedule made = make_schedule(options_.schedule, runs_, costs_, stages_.size(), int(micro_batches));
  timeline_of(made, runs_, costs_, int(micro_batches));  // proves that no stage waits forever
  return schedules_.emplace(micro_batches, std::move(made)).first->second;
}

PipelineTimeline Pipeline::timeline(std::int64_t micro_batches) {
  return timeline_of(schedule(micro_batches), runs_, costs_, int(micro_batches));
}

std::string Pipeline::describe(std::int64_t micro_batches) {
  std::vector<std::string> units(std::size_t(stages_.size()));
  for (const UnitRun& run : runs_) {
    std::string& own = units[std::size_t(run.stage)];
    own += text(own.empty() ? "" : ", ", run.begin, run.end - run.begin > 1 ? text(" to ", run.end - 1) : "");
  }
  std::string words = text(stages_.size(), " stages: units ");
  for (std::size_t stage = 0; stage < units.size(); ++stage) words += (stage ? "; " : "") + units[stage];
  const PipelineTimeline found = timeline(micro_batches);
  const int most = *std::max_element(found.most_live.begin(), found.most_live.end());
  return words + text("; up to ", most, most == 1 ? " micro-batch" : " micro-batches", " at once on a stage, ",
                      int(100 * found.bubble() / (1 + found.bubble()) + 0.5), " % of a step spent waiting");
}

std::vector<Pipeline::Message> Pipeline::messages(const PipelineSchedule& schedule, int from, int to) const {
  std::vector<Message> sent;
  for (const auto& [backward, run, micro_batch] : schedule.stages[std::size_t(from)]) {
    const int next = run + (backward ? -1 : 1);
    if (next < 0 || next == int(runs_.size()) || stage_of(next) != to) continue;
    if (!backward || sends_gradient(run)) sent.push_back({backward, next, micro_batch});
  }
  return sent;
}

// Both ends tag the call with the unit that receives the message.
CallTag Pipeline::tag_of(const Message& message) const {
  const UnitRun& run = runs_[std::size_t(message.run)];
  return {message.gradient ? Phase::backward : Phase::forward, message.gradient ? run.end - 1 : run.begin};
}

at::Tensor Pipeline::place_of(const ForwardContext& context) const {
  const CategoryScope scope(MemoryCategory::activations);
  ForwardContext divided = context;
  divided.context_ranks = groups_.context_ranks;
  divided.tensor_ranks = groups_.tensor_ranks;
  return at::empty(activation_shape(divided, width_), activations_);
}

/// One step of this stage.
class Pipeline::Step {
 public:
  Step(Pipeline& pipeline, std::int64_t micro_batches, double scale, const ContextOf& context_of)
      : pipeline_(pipeline),
        schedule_(pipeline.schedule(micro_batches)),
        micro_batches_(int(micro_batches)),
        scale_(scale),
        context_of_(context_of) {
    for (int from = 0; from < stages().size(); ++from)
      if (from != stages().rank()) coming_[from] = {pipeline.messages(schedule_, from, stages().rank()), 0};
    result_.losses =
        at::zeros({micro_batches}, at::TensorOptions().dtype(at::kDouble).device(pipeline.activations_.device()));
  }

  Result run() {
    for (const PipelineAction& action : schedule_.stages[std::size_t(stages().rank())]) {
      action.backward ? backward(action.run, action.micro_batch) : forward(action.run, action.micro_batch);
      leave(action.micro_batch);
    }
    stages().settle({Phase::backward});
    pipeline_.share(result_);
    return std::move(result_);
  }

 private:
  /// The messages from another stage, in order, and how many have arrived.
  struct Coming {
    std::vector<Message> all;
    std::size_t come = 0;
  };

  Communicator& stages() const { return pipeline_.stages_; }

  Visit& visit(int micro_batch) {
    const auto [place, is_new] = visits_.try_emplace(micro_batch);
    Visit& visit = place->second;
    if (is_new) {
      visit.context = context_of_(micro_batch, visit.batch);
      visit.context.gradient_scale = scale_;
      visit.actions_left = 2 * int(pipeline_.own_.size());
    }
    return visit;
  }
  void leave(int micro_batch) {
    if (--visits_.at(micro_batch).actions_left == 0) visits_.erase(micro_batch);
  }

  at::Tensor receive(const Message& message, int from) {
    Coming& coming = coming_.at(from);
    while (!early_.contains(message)) {
      const Message& next = coming.all.at(coming.come++);
      const at::Tensor place = pipeline_.place_of(visit(next.micro_batch).context);
      stages().recv(place, from, pipeline_.tag_of(next));
      early_.emplace(next, place);
    }
    return std::move(early_.extract(message).mapped());
  }
  void send(const at::Tensor& tensor, const Message& message) {
    stages().send(tensor, pipeline_.stage_of(message.run), pipeline_.tag_of(message));
  }

  void forward(int r, int m) {
    const ChainRun& run = pipeline_.own_.at(r);
    const ForwardContext& context = visit(m).context;
    Live& live = live_[{r, m}];
    if (!run.is_first())
      live.input = receive({false, r, m}, pipeline_.stage_of(r - 1)).set_requires_grad(pipeline_.sends_gradient(r));
    live.pass = std::make_unique<ChainPass>(run, context, MicroBatch{m == 0, m + 1 == micro_batches_}, live.input);
    if (!run.is_last()) send(live.pass->result().detach().contiguous(), {false, r + 1, m});
  }

  void backward(int r, int m) {
    const ChainRun& run = pipeline_.own_.at(r);
    Live live = std::move(live_.extract({r, m}).mapped());
    at::Tensor of_result;
    if (!run.is_last() && pipeline_.sends_gradient(r + 1)) of_result = receive({true, r, m}, pipeline_.stage_of(r + 1));
    live.pass->backward(scale_, of_result);
    if (const at::Tensor loss = live.pass->loss(); loss.defined()) result_.losses[m].add_(loss);
    add_figures(result_.figures, live.pass->figures());
    if (!pipeline_.sends_gradient(r)) return;
    const at::Tensor gradient = live.input.grad();
    ZERO_CHECK(gradient.defined(), "the units of a run pass gradients on");
    send(gradient.contiguous(), {true, r - 1, m});
  }

  Pipeline& pipeline_;
  const PipelineSchedule& schedule_;
  int micro_batches_;
  double scale_;
  const ContextOf& context_of_;
  std::map<int, Coming> coming_;              // by stage
  std::map<Message, at::Tensor> early_;       // messages that arrived before their action
  std::map<int, Visit> visits_;               // by micro-batch
  std::map<std::pair<int, int>, Live> live_;  // by run and micro-batch
  Result result_;
};

Pipeline::Result Pipeline::accumulate(std::int64_t micro_batches, double scale, const ContextOf& context_of) {
  return Step(*this, micro_batches, scale, context_of).run();
}

// Only stages whose units report metrics know the metrics' names; the other stages receive the names.
void Pipeline::share(Result& result) {
  const at::Tensor numbers =
      at::cat({result.losses, at::full({1}, double(result.figures.size()), result.losses.options())});
  stages_.all_reduce(numbers, {at::kDouble, false}, {Phase::other});
  if (numbers.is_meta()) return;  // Meta tensors have no values
  result.losses = numbers.narrow(0, 0, numbers.numel() - 1).clone();
  if (numbers[-1].item<double>() == 0) return;
  std::string names;
  for (const auto& [name, sum] : result.figures) names += name + "\n";
  std::vector<std::string> all;
  for (const std::string& lines : all_gather_texts(stages_, names, {Phase::other}))
    for (std::size_t begin = 0, end; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1)
      if (std::ranges::find(all, lines.substr(begin, end - begin)) == all.end())
        all.push_back(lines.substr(begin, end - begin));
  LossFigures figures;
  for (const std::string& name : all) {
    const auto own = std::ranges::find(result.figures, name, &LossFigures::value_type::first);
    const at::Tensor sum =
        own == result.figures.end() ? at::zeros({1}, result.losses.options()) : own->second.to(at::kDouble).view({1});
    figures.emplace_back(name, sum.clone());
    stages_.all_reduce(figures.back().second, {at::kDouble, false}, {Phase::other});
    figures.back().second = figures.back().second.squeeze(0);
  }
  result.figures = std::move(figures);
}

at::Tensor Pipeline::evaluate(const ForwardContext& context, const ChainPass::Head& head, LossFigures* figures) {
  at::Tensor result;
  Result shared{at::zeros({1}, at::TensorOptions().dtype(at::kDouble).device(activations_.device())), {}};
  for (const auto& [r, run] : own_) {
    at::Tensor x;
    if (!run.is_first()) {
      x = place_of(context);
      stages_.recv(x, stage_of(r - 1), tag_of({false, r, 0}));
    }
    const ChainPass pass(run, context, {}, x, head);
    if (figures) add_figures(shared.figures, pass.figures());
    if (run.is_last())
      result = pass.result().contiguous();
    else
      stages_.send(pass.result().contiguous(), stage_of(r + 1), tag_of({false, r + 1, 0}));
  }
  stages_.settle({Phase::forward});
  // The other stages receive type and shape, then the values.
  const int last = stage_of(int(runs_.size()) - 1);
  std::vector<std::int64_t> shape;
  if (result.defined()) {
    shape = result.sizes().vec();
    shape.push_back(std::int64_t(result.scalar_type()));
  }
  shape.resize(std::size_t(broadcast_number(stages_, std::int64_t(shape.size()), last)));
  for (std::int64_t& size : shape) size = broadcast_number(stages_, size, last);
  const auto type = at::ScalarType(shape.back());
  shape.pop_back();
  if (!result.defined()) result = at::empty(shape, at::TensorOptions().dtype(type).device(context.batch->ids.device()));
  stages_.broadcast(result.view({-1}), last, {Phase::forward});
  if (figures) {
    share(shared);
    add_figures(*figures, shared.figures);
  }
  return result;
}

}  // namespace zero
