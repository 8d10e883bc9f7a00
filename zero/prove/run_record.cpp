#include "zero/prove/run_record.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/lookup.h"
#include "base/log.h"

namespace zero {
namespace {

using nlohmann::json;

json json_of(const TensorRecord& record) {
  const TensorSketch& sketch = record.sketch;
  return {{"tensor", record.tensor},   {"hash", sketch.hash},
          {"numel", sketch.numel},     {"sum", sketch.sum},
          {"squares", sketch.squares}, {"buckets", sketch.buckets},
          {"numbers", record.numbers}, {"other_rank", record.other_rank}};
}

// JSON cannot represent non-finite numbers, so null stands for them.
double number_of(const json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

TensorRecord tensor_of(const json& object) {
  TensorRecord record;
  record.tensor = object.at("tensor").get<std::string>();
  record.sketch.hash = object.at("hash").get<std::uint64_t>();
  record.sketch.numel = object.at("numel").get<std::int64_t>();
  record.sketch.sum = number_of(object.at("sum"));
  record.sketch.squares = number_of(object.at("squares"));
  for (std::size_t b = 0; b < TensorSketch::buckets_count; ++b)
    record.sketch.buckets[b] = number_of(object.at("buckets").at(b));
  record.numbers = object.at("numbers").get<bool>();
  record.other_rank = object.at("other_rank").get<int>();
  return record;
}

}  // namespace

const KindRecord* StepRecord::find(const std::string& kind) const {
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const KindRecord& k) { return k.kind == kind; });
  return found == kinds.end() ? nullptr : &*found;
}

std::string format_kind(std::int64_t step, const KindRecord& record) {
  json tensors = json::array();
  for (const TensorRecord& tensor : record.tensors) tensors.push_back(json_of(tensor));
  return json{{"step", step}, {"kind", record.kind}, {"tensors", std::move(tensors)}}.dump();
}

std::string format_figures(std::int64_t step, const StepFigures& figures) {
  return json{{"step", step},
              {"loss", figures.loss},
              {"grad_norm", figures.grad_norm},
              {"loss_scale", figures.loss_scale},
              {"updates", figures.updates}}
      .dump();
}

RunRecord read_record(const std::string& path) {
  if (!is_there(path)) throw Error(path + ": is missing");
  const File file = File::open(path);
  std::string content(std::size_t(file.size()), '\0');
  file.read_at(content.data(), file.size(), 0);
  std::istringstream lines(content);
  RunRecord record;
  try {
    for (std::string line; std::getline(lines, line);) {
      const json object = json::parse(line);
      StepRecord& step = record.steps[object.at("step").get<std::int64_t>()];
      if (!object.contains("kind")) {
        step.has_figures = true;
        step.figures = {number_of(object.at("loss")), number_of(object.at("grad_norm")),
                        number_of(object.at("loss_scale")), object.at("updates").get<std::int64_t>()};
        continue;
      }
      KindRecord kind{object.at("kind").get<std::string>(), {}};
      for (const json& tensor : object.at("tensors")) kind.tensors.push_back(tensor_of(tensor));
      step.kinds.push_back(std::move(kind));
    }
  } catch (const json::exception& error) {
    throw Error(text(path, ": is no record of a run: ", error.what()));
  }
  return record;
}

}  // namespace zero
