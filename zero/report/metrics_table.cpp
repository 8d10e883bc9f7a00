#include "zero/report/metrics_table.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/whole_lines.h"
#include "base/log.h"

namespace zero {
namespace {

using Json = nlohmann::json;

/// The numbers of one object, without the tree that a parser would build.
class ObjectReader final : public nlohmann::json_sax<Json> {
 public:
  struct Number {
    std::string name;
    double value = 0;
  };

  /// False if the line is no object with a whole "step".
  bool read(std::string_view line) {
    count_ = 0;
    depth_ = 0;
    step_ = -1;
    return Json::sax_parse(line, this) && step_ >= 0;
  }
  std::int64_t step() const { return step_; }
  std::size_t count() const { return count_; }
  const Number& number(std::size_t i) const { return numbers_[i]; }

  bool null() override { return add(std::numeric_limits<double>::quiet_NaN()); }
  bool boolean(bool) override { return depth_ > 0; }
  bool number_integer(number_integer_t value) override { return whole(value); }
  bool number_unsigned(number_unsigned_t value) override { return whole(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t&) override { return depth_ > 0; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return ++depth_ < 64; }
  bool end_object() override { return depth_-- > 0; }
  bool start_array(std::size_t) override { return depth_ > 0 && ++depth_ < 64; }
  bool end_array() override { return depth_-- > 0; }
  bool key(string_t& name) override {
    if (depth_ == 1) key_.assign(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override { return false; }

 private:
  template <class Whole>
  bool whole(Whole value) {
    if (depth_ != 1 || key_ != "step") return add(static_cast<double>(value));
    if (std::cmp_less(value, 0) || std::cmp_greater(value, std::int64_t(1) << 53)) return false;
    step_ = static_cast<std::int64_t>(value);
    return true;
  }
  bool add(double value) {
    if (depth_ != 1 || key_ == "version" || key_ == "step") return depth_ > 0;
    if (count_ == numbers_.size()) numbers_.emplace_back();
    numbers_[count_].name.assign(key_);
    numbers_[count_++].value = value;
    return true;
  }

  std::vector<Number> numbers_;  // kept from line to line, with their memory
  std::size_t count_ = 0;
  int depth_ = 0;
  std::int64_t step_ = -1;
  std::string key_;
};

/// Puts lines into a table.
class TableFiller {
 public:
  explicit TableFiller(MetricsTable& table) : table_(table) {}

  void add(std::string_view line) {
    if (!object_.read(line)) {
      ++table_.damaged;
      return;
    }
    if (!table_.steps.empty() && object_.step() <= table_.steps.back()) go_back(object_.step());
    const auto row = static_cast<std::uint32_t>(table_.steps.size());
    table_.steps.push_back(object_.step());
    for (std::size_t i = 0; i < object_.count(); ++i) add(object_.number(i), row);
  }

 private:
  void add(const ObjectReader::Number& number, std::uint32_t row) {
    const auto [found, is_new] = places_.try_emplace(number.name, table_.series.size());
    if (is_new && table_.series.size() == MetricsTable::most_series) {
      places_.erase(found);
      ++table_.dropped;
      return;
    }
    if (is_new) table_.series.push_back({number.name, {}, {}});
    MetricsSeries& series = table_.series[found->second];
    if (!series.rows.empty() && series.rows.back() == row) {  // a key that comes twice
      series.values.back() = number.value;
      return;
    }
    series.rows.push_back(row);
    series.values.push_back(number.value);
  }

  void go_back(std::int64_t step) {
    ++table_.went_back;
    const auto first = std::lower_bound(table_.steps.begin(), table_.steps.end(), step);
    const auto rows = static_cast<std::uint32_t>(first - table_.steps.begin());
    table_.steps.erase(first, table_.steps.end());
    for (MetricsSeries& series : table_.series)
      while (!series.rows.empty() && series.rows.back() >= rows) {
        series.rows.pop_back();
        series.values.pop_back();
      }
  }

  MetricsTable& table_;
  ObjectReader object_;
  std::unordered_map<std::string, std::size_t> places_;
};

}  // namespace

const MetricsSeries* MetricsTable::find(const std::string& name) const {
  const auto found = std::find_if(series.begin(), series.end(), [&](const auto& one) { return one.name == name; });
  return found == series.end() ? nullptr : &*found;
}

MetricsTable read_metrics(const std::string& path) {
  MetricsTable table;
  TableFiller filler(table);
  table.is_torn = for_each_whole_line(File::open(path), [&](std::string_view line) { filler.add(line); });
  std::erase_if(table.series, [](const MetricsSeries& series) { return series.rows.empty(); });
  if (table.steps.empty() && table.damaged > 0)
    throw InputError(text(path, ": none of its ", table.damaged,
                          " line(s) is an object of a step, so it is no metrics.jsonl of a run: name the output "
                          "directory of a run"));
  return table;
}

}  // namespace zero
