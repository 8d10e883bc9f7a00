#include "zero/train/checkpoints.h"

#include <chrono>
#include <iomanip>

#include "comm/agree.h"
#include "comm/log.h"

namespace zero {

Checkpoints::Checkpoints(const CheckpointConfig& config, Parts parts) : config_(config), parts_(std::move(parts)), folders_(parts_.calls, parts_.root) {}

bool Checkpoints::due(std::int64_t steps, std::int64_t total) const {
  return config_.interval > 0 && (steps % config_.interval == 0 || steps == total);
}

bool Checkpoints::save(const RunPosition& position) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    save_checkpoint(parts_.engine, parts_.run, position, folders_, parts_.calls, parts_.agree, {.keep = config_.keep});
  } catch (const AgreedError& error) {
    failed_ = true;
    give_up(position, error.what());
    return false;
  }
  failed_ = false;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  log_info("checkpoint ", folders_.path(position.steps), ", written in ", std::fixed, std::setprecision(2), seconds.count(), " s");
  return true;
}

void Checkpoints::give_up(const RunPosition& position, const std::string& why) {
  if (parts_.engine.host().rank() != 0) return;
  const std::vector<std::int64_t> left = folders_.steps();
  log_error("the checkpoint of step ", position.steps, " is given up: ", why, ". ",
            left.empty() ? std::string("There is no older one") : "The newest one is " + folders_.path(left.front()));
  try {
    folders_.discard(position.steps);
  } catch (const Error& error) {
    log_warning("what was begun of it stays: ", error.what());
  }
}

}  // namespace zero
