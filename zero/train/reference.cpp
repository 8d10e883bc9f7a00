#include "zero/train/reference.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/lookup.h"
#include "base/hash.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "models/formats/safetensors.h"
#include "models/formats/safetensors_writer.h"
#include "zero/data/rows/chosen_rows.h"
#include "zero/output/record_names.h"
#include "zero/train/divergence.h"

namespace zero {
namespace {

constexpr CallTag tag{Phase::setup};
constexpr std::chrono::minutes write_every{5};

at::Tensor as_tensor(const std::vector<float>& values) {
  return at::from_blob(const_cast<float*>(values.data()), {std::ssize(values)}, at::kFloat);
}

std::vector<float> as_vector(const at::Tensor& values) {
  const at::Tensor flat = values.to(at::kFloat).contiguous();
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

std::string checksum_of(const std::vector<float>& values) {
  return std::to_string(crc32c_of({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}));
}

/// The rows that a run's steps take, in the order of the file.
std::vector<std::int64_t> rows_of_steps(SampleOrder order, std::int64_t steps) {
  std::vector<bool> taken(std::size_t(order.options().rows));
  std::int64_t left = order.options().rows;
  for (std::int64_t step = 0; step < steps && left > 0; ++step)
    for (const std::int64_t row : order.rows_of_step(step)) {
      left -= taken[std::size_t(row)] ? 0 : 1;
      taken[std::size_t(row)] = true;
    }
  std::vector<std::int64_t> rows;
  for (std::size_t row = 0; row < taken.size(); ++row)
    if (taken[row]) rows.push_back(std::int64_t(row));
  return rows;
}

std::vector<std::int64_t> all_rows(std::int64_t count) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

/// Logs how far a pass over rows is, twice a minute.
class PassProgress {
 public:
  explicit PassProgress(std::int64_t rows) : rows_(rows) {}

  void show(std::int64_t done) {
    const auto now = Clock::now();
    if (now - shown_ < std::chrono::seconds(30) || done == 0) return;
    shown_ = now;
    const double left = std::chrono::duration<double>(now - begin_).count() * double(rows_ - done) / double(done);
    log_info("reference: ", done, " of ", rows_, " rows, about ", std::int64_t(left + 1), " s left");
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t rows_;
  Clock::time_point begin_ = Clock::now(), shown_ = begin_;
};

}  // namespace

struct Reference::Pause {
  bool stops = false, is_late = false, saves = false;
};

std::vector<std::int64_t> Reference::Part::missing() const {
  std::vector<std::int64_t> rows;
  std::ranges::copy_if(needed, std::back_inserter(rows),
                       [&](std::int64_t row) { return !data->rows->has_values(row); });
  return rows;
}

Reference::Reference(TrainingData& data, const Config& config, std::int64_t steps, ReferenceOwner owner)
    : path_(config.job.output_dir + "/" + reference_file), owner_(std::move(owner)) {
  for (const ReferencePart& part : data.references)
    parts_.push_back(
        {&part, part.of_steps ? rows_of_steps(data.training->order(), steps) : all_rows(part.rows->size())});
}

std::int64_t Reference::missing() const {
  std::int64_t rows = 0;
  for (const Part& part : parts_) rows += std::ssize(part.missing());
  return rows;
}

bool Reference::is_complete() const { return missing() == 0; }

const std::string& Reference::mark_of_start() {
  if (mark_of_start_.empty()) mark_of_start_ = owner_.mark_of_start();
  return mark_of_start_;
}

const std::string& Reference::hash_of_rows(Part& part) {
  if (part.hash.empty()) part.hash = std::to_string(hash_of(*part.data->rows->rows()));
  return part.hash;
}

std::string Reference::read_part(Part& part, bool has_checkpoint) {
  if (!is_there(path_)) return "is missing";
  const SafetensorsFile file(path_);
  const auto stored = [&](const std::string& key) {
    const auto found = file.metadata().find(key);
    return found == file.metadata().end() ? "" : found->second;
  };
  const std::string& name = part.data->name;
  ReferenceRows& rows = *part.data->rows;
  if (stored("run") != owner_.run) return "is of another run";
  if (!has_checkpoint && stored("start") != mark_of_start()) return "is of another model";
  const StoredTensor* tensor = file.find(name);
  if (!tensor || tensor->shape != std::vector{rows.size(), rows.sequences_of_a_row()}) return "lacks values";
  std::vector<float> values(static_cast<std::size_t>(tensor->numel()));
  file.read(name, 0, tensor->numel(), as_tensor(values));
  stored_mark_ = stored("start");  // also if the values are computed again, which takes the same model
  if (stored(name) != hash_of_rows(part) + " " + checksum_of(values))
    return "does not fit the data, is damaged, or is of another version of zero";
  rows.fill(std::move(values));
  return "";
}

void Reference::read(Communicator& control, bool has_checkpoint) {
  std::map<std::string, std::string> lacking;  // rank 0's: names of data by the reason
  for (Part& part : parts_) {
    std::string reason;
    on_first(control, [&] {
      if (!has_checkpoint && !is_there(path_)) return;  // the run died before it had kept any
      try {
        reason = read_part(part, has_checkpoint);
      } catch (const Error& error) {
        reason = text("cannot be read: ", error.what());
      }
    });
    if (!broadcast_text(control, reason, 0, tag).empty()) {
      std::string& names = lacking[reason];
      names += (names.empty() ? "" : ", ") + part.data->name;
      continue;
    }
    const bool has = control.rank() == 0;
    ReferenceRows& rows = *part.data->rows;
    const at::Tensor values = as_tensor(rows.values()).clone();
    control.broadcast(values, 0, tag);
    if (!has) rows.fill(as_vector(values));
  }
  for (const auto& [reason, names] : lacking)
    if (control.rank() == 0)
      log_warning(path_, " ", reason, ": the reference's log-probabilities of the ", names,
                  " data are computed again, by the model at the run's start");
  if (is_complete()) return;
  on_first(control, [&] {
    if (stored_mark_.empty() || stored_mark_ == mark_of_start()) return;
    throw InputError(path_ +
                     ": lacks values of rows that the run now reaches, and the model with which the run began has "
                     "changed since: bring it back to compute them, or begin another run");
  });
}

Reference::Pause Reference::look_around(Engine& engine, const StopSignal& stop, const RunClock& clock) const {
  const bool decides = engine.host().rank() == 0;
  const bool late = decides && clock.end_is_due(RunClock::Next::part_of_validation);
  const bool saves = decides && std::chrono::steady_clock::now() - written_ >= write_every;
  const at::Tensor asked = at::tensor({stop.requested() ? 1.0 : 0.0, late ? 1.0 : 0.0, saves ? 1.0 : 0.0}, at::kFloat);
  engine.host().all_reduce(asked, {}, tag);
  const auto* any = asked.const_data_ptr<float>();
  return {any[0] > 0, any[1] > 0, any[2] > 0};
}

bool Reference::compute_part(Part& part, Engine& engine, const StopSignal& stop, RunClock& clock) {
  ReferenceRows& rows = *part.data->rows;
  const auto source = std::make_shared<ChosenRows>(rows.rows(), part.missing());
  const std::unique_ptr<ValidationLoader> loader = part.data->loader_of(source);
  const bool speaks = engine.host().rank() == 0, counts = engine.mesh().index(axes::rows.others()) == 0;
  const at::Tensor values = at::zeros({source->size(), rows.sequences_of_a_row()}, at::kFloat);
  PassProgress progress(source->size());
  std::int64_t kept = 0;
  for (std::int64_t m = 0; m < loader->micro_batches(); ++m) {
    if (speaks) progress.show(loader->rows_before(m));
    const at::Tensor found = log_probabilities_of(engine, loader->batch(m), rows.sequences_of_a_row());
    if (counts) values.narrow(0, loader->first_row(m), found.size(0)).copy_(found);
    clock.validated_part();
    const Pause pause = look_around(engine, stop, clock);
    const bool ends = pause.stops || pause.is_late;
    if (!ends && !pause.saves && m + 1 < loader->micro_batches()) continue;
    const std::int64_t done = loader->rows_before(m + 1);
    const at::Tensor more = values.narrow(0, kept, done - kept);
    engine.host().all_reduce(more, {}, tag);
    engine.mesh().ranks().failures().check();
    all_or_none(engine.host(), [&] {
      if (!at::isfinite(more).all().item<bool>())
        throw InputError(
            "the reference model gives log-probabilities that are not finite: look at the model's weights");
    });
    rows.set(std::span(source->chosen()).subspan(std::size_t(kept), std::size_t(done - kept)), as_vector(more));
    kept = done;
    const std::string failure = ends || pause.saves ? write(engine.host()) : "";
    if (!ends) continue;
    const std::string where = text("stopped ", pause.stops ? "on request" : "ahead of job.time_limit",
                                   " while the reference was computed, before the first step");
    if (!failure.empty()) throw Error(where + ", and what was computed is lost: begin anew");
    if (speaks) log_info(where, ": what was computed is kept, and ", missing(), " rows are left: go on with --resume");
    return false;
  }
  return true;
}

bool Reference::compute(Engine& engine, StopSignal& stop, RunClock& clock) {
  stop.answer_with(StopAnswer::nothing_follows);
  const auto begin = written_ = std::chrono::steady_clock::now();
  const bool speaks = engine.host().rank() == 0;
  if (speaks)
    log_info("reference: computing the log-probabilities of ", counted(missing(), "row"),
             " under the model at the run's start");
  clock.validation_begins();
  for (Part& part : parts_)
    if (!part.missing().empty() && !compute_part(part, engine, stop, clock)) return false;
  write(engine.host());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  stop.answer_with(StopAnswer::checkpoint_follows);
  if (speaks) log_info("reference: done in ", std::lround(seconds.count()), " s");
  return true;
}

std::string Reference::write(Communicator& control) {
  const auto failure = agreed_failure_of([&] {
    on_first(control, [&] {
      std::vector<SafetensorsSpec> specs;
      std::map<std::string, std::string> marks{{"format", "pt"}, {"run", owner_.run}, {"start", mark_of_start()}};
      for (Part& part : parts_) {
        const ReferenceRows& rows = *part.data->rows;
        specs.push_back({part.data->name, at::kFloat, {rows.size(), rows.sequences_of_a_row()}});
        marks[part.data->name] = hash_of_rows(part) + " " + checksum_of(rows.values());
      }
      SafetensorsWriter writer(path_, std::move(specs), std::move(marks));
      for (const Part& part : parts_) writer.append(as_tensor(part.data->rows->values()));
      writer.finish();
    });
  });
  written_ = std::chrono::steady_clock::now();
  if (failure && control.rank() == 0)
    log_warning(path_, " could not be written: ", *failure,
                ". A resumption will compute the reference's log-probabilities again");
  return failure.value_or("");
}

}  // namespace zero
