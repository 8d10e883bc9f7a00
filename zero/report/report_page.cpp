#include "zero/report/report_page.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <string_view>

#include "base/quoted.h"
#include "page_text.h"

namespace zero {
namespace {

constexpr int value_digits = 6, place_digits = 10;
constexpr std::size_t page_numbers = 600'000, page_sample_bytes = 500'000;  // of all runs together

/// Writes JSON as a text. nlohmann's values would hold each number in 16 bytes first.
class JsonWriter {
 public:
  void open(char bracket) { begin(), out_ += bracket, first_ = true; }
  void close(char bracket) { out_ += bracket, first_ = false; }
  void key(std::string_view name) { begin(), out_ += json_quoted(name), out_ += ':', first_ = true; }
  void word(std::string_view value) { begin(), out_ += json_quoted(value); }
  void flag(bool value) { begin(), out_ += value ? "true" : "false"; }
  void none() { begin(), out_ += "null"; }
  void whole(std::int64_t value) { begin(), out_ += std::to_string(value); }
  void number(double value, int digits) {
    if (!std::isfinite(value)) return none();
    begin();
    char buffer[32];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, digits).ptr;
    out_.append(buffer, end);
  }
  void number(std::optional<double> value) { number(value.value_or(std::nan("")), place_digits); }
  template <class Values, class Each>
  void list(const Values& values, const Each& each) {
    open('[');
    for (const auto& value : values) each(value);
    close(']');
  }

  std::string take() { return std::move(out_); }

 private:
  void begin() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  std::string out_;
  bool first_ = true;
};

struct FieldWords {
  const char *name, *label, *kind;
};
// Fields with words of their own, in the order of the page. Others follow by their names.
constexpr FieldWords known_fields[] = {
    {"loss", "loss", ""},
    {"validation_loss", "validation loss", ""},
    {"lr", "learning rate", ""},
    {"d", "Prodigy's distance d", ""},
    {"d_lr", "Prodigy's rate, d times lr", ""},
    {"grad_norm", "gradient norm", ""},
    {"tokens_per_second", "tokens per second", "count"},
    {"peak_bytes", "peak memory of the fullest rank", "bytes"},
    {"step_seconds", "seconds of a step", ""},
};

// Fields without a chart: the axes, the clock, and the same parts of the slowest rank.
bool is_charted(std::string_view name) {
  return name != "tokens" && name != "seconds" && name != "time" && !name.starts_with("slowest_");
}

/// The part of a step whose seconds the field has; empty for other fields.
std::string_view part_of(std::string_view name) {
  constexpr std::string_view prefix = "step_";
  return name.starts_with(prefix) && name != "step_seconds" ? name.substr(prefix.size()) : "";
}

/// Writes the charts of the page, and the parts of a step that any run has.
void write_fields(JsonWriter& json, const std::vector<ReportedRun>& runs) {
  std::vector<std::string> names, parts;
  for (const ReportedRun& run : runs)
    for (const ReportedCurve& curve : run.curves) {
      if (!is_charted(curve.field)) continue;
      const std::string_view part = part_of(curve.field);
      std::vector<std::string>& list = part.empty() ? names : parts;
      const std::string name(part.empty() ? curve.field : part);
      if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
    }
  json.key("parts"), json.list(parts, [&](const std::string& part) { json.word(part); });
  json.key("fields"), json.open('[');
  const auto write = [&](std::string_view name, std::string_view label, std::string_view kind) {
    json.open('{');
    json.key("name"), json.word(name), json.key("label"), json.word(label), json.key("kind"), json.word(kind);
    json.close('}');
  };
  for (const FieldWords& field : known_fields)
    if (std::erase(names, field.name) > 0) write(field.name, field.label, field.kind);
  for (const std::string& name : names) {
    std::string label = name;
    std::replace(label.begin(), label.end(), '_', ' ');
    write(name, label, name.ends_with("_bytes") ? "bytes" : name.ends_with("tokens") ? "count" : "");
  }
  json.close(']');
}

void write_curve(JsonWriter& json, const ReportedCurve& curve) {
  const auto values = [&](const char* key, const std::vector<double>& numbers) {
    json.key(key), json.list(numbers, [&](double value) { json.number(value, value_digits); });
  };
  const auto wholes = [&](const char* key, const std::vector<std::int64_t>& numbers) {
    if (!numbers.empty()) json.key(key), json.list(numbers, [&](std::int64_t value) { json.whole(value); });
  };
  json.open('{');
  wholes("s", curve.steps);
  values("v", curve.points.mean);
  if (curve.is_thinned) values("lo", curve.points.low), values("hi", curve.points.high);
  if (curve.points.not_finite > 0) json.key("bads"), json.whole(curve.points.not_finite);
  wholes("bad", curve.not_finite_at);
  json.close('}');
}

void write_figures(JsonWriter& json, const ReportedRun& run) {
  const RunFigures& figures = run.figures;
  constexpr const char* states[] = {"running", "finished", "stopped"};
  json.key("state"), json.word(states[static_cast<int>(run.state)]);
  json.key("restarts"), json.whole(run.restarts);
  json.key("ranks");
  if (run.header.ranks > 0)
    json.whole(run.header.ranks);
  else
    json.none();
  json.key("steps"), json.whole(figures.steps);
  if (const auto planned = run.planned()) json.key("planned"), json.whole(*planned);
  json.key("final_loss"), json.number(figures.final_loss), json.key("best_loss"), json.number(figures.best_loss);
  json.key("validation_loss"), json.number(figures.validation_loss);
  json.key("seconds"), json.number(figures.seconds), json.key("tokens"), json.number(figures.tokens);
  json.key("rate"), json.number(figures.rate), json.key("peak_bytes"), json.number(figures.peak_bytes);
  json.key("bad"), json.open('[');  // columns of the table whose last value is not finite
  if (figures.final_loss && !std::isfinite(*figures.final_loss)) json.word("final loss");
  if (figures.validation_loss && !std::isfinite(*figures.validation_loss)) json.word("validation");
  json.close(']');
}

void write_samples(JsonWriter& json, const ReportedSamples& of) {
  json.open('{');
  json.key("step"), json.whole(of.step);
  json.key("rows"), json.list(of.samples, [&](const Sample& sample) {
    json.open('['), json.word(sample.prompt), json.word(sample.text), json.close(']');
  });
  json.close('}');
}

void write_run(JsonWriter& json, const ReportedRun& run, const std::vector<std::string>& differing) {
  json.open('{');
  json.key("name"), json.word(run.name), json.key("path"), json.word(run.folder);
  write_figures(json, run);
  json.key("settings"), json.list(differing, [&](const std::string& key) {
    const auto found = run.settings.find(key);
    if (found == run.settings.end())
      json.none();
    else
      json.word(found->second);
  });
  json.key("notes"), json.list(run.notes, [&](const std::string& note) { json.word(note); });
  json.key("x"), json.open('{');
  json.key("step"), json.list(run.steps, [&](std::int64_t step) { json.whole(step); });
  for (const auto& [name, places] : {std::pair("tokens", &run.tokens), std::pair("seconds", &run.seconds)})
    if (!places->empty()) json.key(name), json.list(*places, [&](double place) { json.number(place, place_digits); });
  json.close('}');
  json.key("series"), json.open('{');
  for (const ReportedCurve& curve : run.curves)
    if (is_charted(curve.field)) json.key(curve.field), write_curve(json, curve);
  json.close('}');
  if (!run.samples.empty())
    json.key("samples"), json.list(run.samples, [&](const auto& of) { write_samples(json, of); });
  json.close('}');
}

std::string data_of(const std::vector<ReportedRun>& runs, const PageFacts& facts) {
  std::vector<const RunSettings*> settings;
  for (const ReportedRun& run : runs) settings.push_back(&run.settings);
  const std::vector<std::string> differing = differing_keys(settings);
  JsonWriter json;
  json.open('{');
  json.key("version"), json.word(facts.version), json.key("made"), json.word(facts.made);
  json.key("live"), json.flag(facts.refresh_seconds.has_value());
  json.key("refresh"), json.whole(facts.refresh_seconds.value_or(0));
  write_fields(json, runs);
  json.key("settings"), json.list(differing, [&](const std::string& key) { json.word(key); });
  json.key("runs"), json.list(runs, [&](const ReportedRun& run) { write_run(json, run, differing); });
  json.close('}');
  return json.take();
}

/// JSON in which no text can end the script around it: "<" occurs in strings alone.
std::string within_script(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) c == '<' ? safe += "\\u003c" : safe += c;
  return safe;
}

}  // namespace

ReportRoom page_room(std::size_t runs) { return {page_numbers / runs, page_sample_bytes / runs}; }

std::string report_page(const std::vector<ReportedRun>& runs, const PageFacts& facts) {
  std::string out;
  std::string_view rest = page::html;
  const auto put = [&](std::string_view mark, const std::string& content) {
    const std::size_t place = rest.find(mark);
    out.append(rest.substr(0, place));
    out += content;
    rest.remove_prefix(place + mark.size());
  };
  put("<<style>>", page::style);
  put("<<data>>", within_script(data_of(runs, facts)));
  put("<<script>>", std::string(page::chart) + page::parts + page::report);
  return out.append(rest);
}

bool is_report_page(std::string_view beginning) {
  return beginning.starts_with("<!DOCTYPE html>\n<!-- zero_report -->\n");
}

}  // namespace zero
