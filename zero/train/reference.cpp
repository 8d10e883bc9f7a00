#include "zero/train/reference.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/hash.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "models/formats/safetensors.h"
#include "models/formats/safetensors_writer.h"
#include "zero/output/record_names.h"
#include "zero/train/divergence.h"

namespace zero {
namespace {

constexpr CallTag tag{Phase::setup};

at::Tensor as_tensor(const std::vector<float>& values) {
  return at::from_blob(const_cast<float*>(values.data()), {std::ssize(values)}, at::kFloat);
}

std::vector<float> as_vector(const at::Tensor& values) {
  const at::Tensor flat = values.to(at::kFloat).contiguous();
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

/// The text by which a file's values of a part are recognised.
std::string mark_of(const ReferenceRows& rows, const std::vector<float>& values) {
  const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return text(hash_of(*rows.rows()), " ", crc32c_of(bytes));
}

/// Logs how far a pass over rows is, twice a minute.
class PassProgress {
 public:
  explicit PassProgress(std::int64_t rows) : rows_(rows) {}

  /// `more`: rows of the present part that are done.
  void show(std::int64_t more) {
    const auto now = Clock::now();
    const std::int64_t done = done_ + more;
    if (now - shown_ < std::chrono::seconds(30) || done == 0) return;
    shown_ = now;
    const double left = std::chrono::duration<double>(now - begin_).count() * double(rows_ - done) / double(done);
    log_info("reference: ", done, " of ", rows_, " rows, about ", std::int64_t(left + 1), " s left");
  }
  void add(std::int64_t rows) { done_ += rows; }

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t rows_, done_ = 0;
  Clock::time_point begin_ = Clock::now(), shown_ = begin_;
};

/// True on all ranks if any rank was asked to stop. Collective.
bool any_stops(Engine& engine, const StopSignal& stop) {
  const at::Tensor asked = at::full({1}, stop.requested() ? 1.0 : 0.0, at::kFloat);
  engine.host().all_reduce(asked, {}, tag);
  return asked.item<float>() > 0;
}

}  // namespace

Reference::Reference(TrainingData& data, const Config& config, std::string run)
    : data_(data), path_(config.job.output_dir + "/" + reference_file), run_(std::move(run)) {}

bool Reference::is_complete() const {
  return std::ranges::all_of(data_.references, [](const ReferencePart& part) { return part.rows->has_values(); });
}

std::string Reference::read_part(const ReferencePart& part) const {
  if (!is_there(path_)) return "is missing";
  const SafetensorsFile file(path_);
  const auto stored = [&](const std::string& key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? "" : found->second;
  };
  if (stored("run") != run_) return "is of another run";
  const StoredTensor* tensor = file.find(part.name);
  if (!tensor || tensor->shape != std::vector{part.rows->size(), part.rows->sequences_of_a_row()})
    return "has no values for the " + part.name + " data";
  std::vector<float> values(static_cast<std::size_t>(tensor->numel()));
  file.read(part.name, 0, tensor->numel(), as_tensor(values));
  if (stored(part.name) != mark_of(*part.rows, values)) return "does not fit the " + part.name + " data, or is damaged";
  part.rows->fill(std::move(values));
  return "";
}

void Reference::read(Communicator& control) {
  for (const ReferencePart& part : data_.references) {
    std::string reason;
    on_first(control, [&] {
      try {
        reason = read_part(part);
      } catch (const Error& error) {
        reason = text("cannot be read: ", error.what());
      }
    });
    if (!broadcast_text(control, reason, 0, tag).empty()) {
      if (control.rank() == 0)
        log_warning(path_, " ", reason, ": the reference's log-probabilities of the ", part.name,
                    " data are computed again, by the model at the run's start");
      continue;
    }
    const std::int64_t count = part.rows->size() * part.rows->sequences_of_a_row();
    const bool has = control.rank() == 0;
    const at::Tensor values = has ? as_tensor(part.rows->values()).clone() : at::empty({count}, at::kFloat);
    control.broadcast(values, 0, tag);
    if (!has) part.rows->fill(as_vector(values));
  }
}

bool Reference::compute(Engine& engine, StopSignal& stop) {
  stop.answer_with(StopAnswer::nothing_follows);
  const auto begin = std::chrono::steady_clock::now();
  const bool speaks = engine.host().rank() == 0, counts = engine.mesh().index(axes::rows.others()) == 0;
  std::int64_t all = 0;
  for (const ReferencePart& part : data_.references) all += part.rows->has_values() ? 0 : part.rows->size();
  if (speaks)
    log_info("reference: computing the log-probabilities of ", all, " rows under the model at the run's start");
  PassProgress progress(all);
  for (const ReferencePart& part : data_.references) {
    if (part.rows->has_values()) continue;
    const std::int64_t sequences = part.rows->sequences_of_a_row();
    const at::Tensor values = at::zeros({part.rows->size(), sequences}, at::kFloat);
    for (std::int64_t m = 0; m < part.loader->micro_batches(); ++m) {
      if (any_stops(engine, stop)) return false;
      if (speaks) progress.show(part.rows->size() * m / part.loader->micro_batches());
      const Batch batch = part.loader->batch(m);
      const at::Tensor found = log_probabilities_of(engine, batch, sequences);
      if (counts) values.narrow(0, part.loader->first_row(m), found.size(0)).copy_(found);
    }
    engine.host().all_reduce(values, {}, tag);
    engine.mesh().ranks().failures().check();
    all_or_none(engine.host(), [&] {
      if (!at::isfinite(values).all().item<bool>())
        throw InputError(
            "the reference model gives log-probabilities that are not finite: look at the model's weights");
    });
    progress.add(part.rows->size());
    part.rows->fill(as_vector(values));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  stop.answer_with(StopAnswer::checkpoint_follows);
  if (speaks) log_info("reference: done in ", std::lround(seconds.count()), " s");
  return true;
}

void Reference::write(Communicator& control) const {
  const auto failure = agreed_failure_of([&] {
    on_first(control, [&] {
      std::vector<SafetensorsSpec> specs;
      std::map<std::string, std::string> marks{{"format", "pt"}, {"run", run_}};
      for (const auto& part : data_.references) {
        specs.push_back({part.name, at::kFloat, {part.rows->size(), part.rows->sequences_of_a_row()}});
        marks[part.name] = mark_of(*part.rows, part.rows->values());
      }
      SafetensorsWriter writer(path_, std::move(specs), std::move(marks));
      for (const auto& part : data_.references) writer.append(as_tensor(part.rows->values()));
      writer.finish();
    });
  });
  if (failure && control.rank() == 0)
    log_warning(path_, " could not be written: ", *failure,
                ". A resumption will compute the reference's log-probabilities again");
}

}  // namespace zero
