#include "zero/train/step_requests.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "zero/train/told_numbers.h"

namespace zero {

void StepRequests::add(const StepRequests& heard) {
  stop = stop || heard.stop;
  save = save || heard.save;
  end = end || heard.end;
  progress = heard.progress;
  save_time = std::max(save_time, heard.save_time);
}

// Clocks differ, so rank 0's clock decides.
StepRequests gathered(Communicator& ranks, const StepRequests& mine, CallTag tag) {
  std::vector<double> numbers{double(mine.stop),     double(mine.save),      double(mine.end),
                              double(mine.progress), mine.save_time.count(), double(mine.peak_bytes)};
  const auto first_figure = std::int64_t(numbers.size());
  numbers.insert(numbers.end(), mine.figures.begin(), mine.figures.end());
  const auto first_loss = std::int64_t(numbers.size());
  numbers.insert(numbers.end(), mine.losses.begin(), mine.losses.end());
  const at::Tensor told = told_numbers(ranks, numbers, tag);
  const auto number = [&](std::int64_t rank, std::int64_t which) { return told[rank][which].item<double>(); };
  StepRequests all;
  for (std::int64_t r = 0; r < told.size(0); ++r) {
    all.stop = all.stop || number(r, 0) != 0;
    all.progress = worse_of(all.progress, SaveProgress(int(number(r, 3))));
    all.save_time = std::max(all.save_time, std::chrono::duration<double>(number(r, 4)));
    all.peak_bytes = std::max(all.peak_bytes, std::int64_t(number(r, 5)));
  }
  all.save = number(0, 1) != 0;
  all.end = number(0, 2) != 0;
  for (std::int64_t f = first_figure; f < first_loss; ++f)
    all.figures.push_back(told.select(1, f).sum().item<double>());
  all.losses = {sum_of_turns(told, first_loss)};
  return all;
}

}  // namespace zero
