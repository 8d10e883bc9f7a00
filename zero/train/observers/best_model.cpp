#include "zero/train/observers/best_model.h"

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/counted.h"
#include "base/files/lookup.h"
#include "base/json_text.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "zero/output/run_mark.h"
#include "zero/train/result/save_result.h"

namespace zero {
namespace {

constexpr CallTag tag{Phase::validate};
constexpr const char* record_name = "validation.json";  // in best/: step and loss

double broadcast_loss(Communicator& ranks, double mine) {
  return std::bit_cast<double>(broadcast_number(ranks, std::bit_cast<std::int64_t>(mine), 0, tag));
}

/// The loss of the model in the folder; NaN if there is none, and `otherwise` if its record is missing or broken.
double recorded_loss(const std::string& folder, double otherwise) {
  try {
    if (!is_marked(folder, Mark::result)) return std::numeric_limits<double>::quiet_NaN();
    return nlohmann::json::parse(read_text_file(folder + "/" + record_name)).at("loss").get<double>();
  } catch (const std::exception&) {
    return otherwise;
  }
}

}  // namespace

void BestModel::add(std::int64_t step, double loss, Lowest& lowest) {
  if (std::isfinite(loss) && (lowest.step == 0 || loss < lowest.loss))
    lowest = {step, loss, 0};
  else
    ++lowest.since;
}

void BestModel::look_back() {
  Communicator& ranks = parts_.engine.host();
  Lowest found;
  all_or_none(ranks, [&] {
    if (const auto& metrics = parts_.saving.records().metrics)
      metrics->visit_after(0, [&](const StepMetrics& line) {
        if (line.validation_loss) add(line.step, *line.validation_loss, found);
      });
  });
  lowest_ = {broadcast_number(ranks, found.step, 0, tag), broadcast_loss(ranks, found.loss),
             broadcast_number(ranks, found.since, 0, tag)};
  loss_.reset();
}

void BestModel::run_begins() {
  if (parts_.config.checkpoint.keep_best && parts_.run) {
    Communicator& ranks = parts_.engine.host();
    const double lowest = lowest_.step > 0 ? lowest_.loss : std::numeric_limits<double>::quiet_NaN();
    const double loss = broadcast_loss(ranks, ranks.rank() == 0 ? recorded_loss(folder(), lowest) : 0);
    if (!std::isnan(loss)) written_ = loss;
  }
  if (is_out_of_patience() && !parts_.loop.held()) end_run();
}

void BestModel::step_finished(const Step& step) {
  if (!step.metrics.validation_loss) return;
  add(step.metrics.step, *step.metrics.validation_loss, lowest_);
  loss_ = step.metrics.validation_loss;
}

bool BestModel::is_out_of_patience() const {
  const std::int64_t patience = parts_.config.training.patience;
  return patience > 0 && lowest_.since >= patience;
}

Then BestModel::at_boundary() {
  const std::optional<double> loss = std::exchange(loss_, std::nullopt);
  if (!loss || parts_.loop.failed()) return Then::go_on;
  const bool is_best = std::isfinite(*loss) && (!written_ || *loss < *written_);
  if (parts_.config.checkpoint.keep_best && parts_.run && is_best) write(*loss);
  if (is_out_of_patience() && !parts_.loop.is_at_end() && !parts_.loop.stops()) end_run();
  return Then::go_on;
}

void BestModel::end_run() {
  if (parts_.engine.host().rank() == 0)
    log_info("the validation loss has not fallen in ", counted(lowest_.since, "validation"),
             ": the run ends after step ", parts_.loop.steps_done(),
             lowest_.step > 0 ? text(", its lowest is that of step ", lowest_.step) : "");
  parts_.loop.end_here();
  if (parts_.loop.steps_done() > 0 && parts_.config.checkpoint.is_regular() &&
      parts_.saving.newest() < parts_.loop.steps_done())
    parts_.saving.save_to_the_end(std::chrono::steady_clock::now());
}

void BestModel::write(double loss) {
  Communicator& ranks = parts_.engine.host();
  std::string refusal;
  if (ranks.rank() == 0 && is_there(folder()) && !is_marked(folder(), Mark::result))
    refusal = "it holds files of somebody else";
  refusal = broadcast_text(ranks, refusal, 0, tag);
  std::optional<std::string> failure;
  if (!refusal.empty())
    failure = refusal;
  else
    failure = write_result(parts_.engine, *parts_.run, parts_.config, folder());
  if (!failure)
    failure = agreed_failure_of([&] {
      on_first(ranks, [&] {
        write_text_file(folder() + "/" + record_name,
                        nlohmann::json{{"step", parts_.loop.steps_done()}, {"loss", loss}}.dump() + "\n");
      });
    });
  if (failure) {
    if (ranks.rank() == 0) log_warning(folder(), " could not be written: ", *failure, ". Training goes on");
  } else {
    written_ = loss;
  }
  parts_.clock.validated();  // the time belongs to the validation, not to a step
}

}  // namespace zero
