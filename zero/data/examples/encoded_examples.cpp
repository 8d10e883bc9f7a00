#include "zero/data/examples/encoded_examples.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "models/formats/tokenizer_files.h"
#include "models/text/tokenizer.h"
#include "zero/data/examples/example_chunks.h"
#include "zero/data/examples/example_reader.h"

namespace zero {
namespace {

/// Increase the version whenever the ids or masks of the same examples change.
constexpr const char *example_rule = "kept examples, version 8", *pair_rule = "kept pairs, version 2",
                     *judged_rule = "kept judged answers, version 2";

constexpr std::size_t count_words = sizeof(ExampleCounts) / sizeof(std::uint32_t);

const char* rule_of(ExampleUse use) {
  return use == ExampleUse::single ? example_rule : use == ExampleUse::pair ? pair_rule : judged_rule;
}

void add_example(EncodedExamples& kept, ExampleUse use, const ConversationEncoder& encoder, std::string_view json,
                 const std::string& place) {
  if (use == ExampleUse::pair) return kept.add(encode_pair(encoder, parse_pair(json, place)));
  if (use == ExampleUse::single) {
    kept.add(encoder.encode(parse_example(json, place)));
    return;
  }
  std::uint32_t paired = 0;
  const std::vector<JudgedAnswer> answers = parse_judged(json, place);
  if (answers.empty()) kept.leave_out_equal(place);
  for (const JudgedAnswer& answer : answers) {
    const std::uint32_t marks = paired | (answer.is_desirable ? EncodedExamples::desirable_bit : 0);
    paired = kept.add(encode_judged(encoder, answer), marks) ? EncodedExamples::paired_bit : 0;
  }
}

}  // namespace

void EncodedExamples::check_ids(const EncodedExample& example) const {
  for (const std::int32_t id : example.ids)
    if (id >= options_.vocab_size)
      throw InputError(text(example.place, ": id ", id, " is beyond the model's vocabulary of ", options_.vocab_size));
}

void EncodedExamples::keep(const EncodedExample& sequence, std::uint32_t marks) {
  for (std::size_t i = 0; i < sequence.ids.size(); ++i)
    tokens_.push_back(static_cast<std::uint32_t>(sequence.ids[i]) | (sequence.trained[i] ? trained_bit : 0));
  lengths_.push_back(static_cast<std::uint32_t>(sequence.ids.size()));
  trained_.push_back(static_cast<std::uint32_t>(std::count(sequence.trained.begin(), sequence.trained.end(), 1)) |
                     marks);
  numbers_.push_back(static_cast<std::uint32_t>(number_in_place(sequence.place)));
}

bool EncodedExamples::add(EncodedExample example, std::uint32_t marks) {
  check_ids(example);
  const auto windows = trained_windows(std::move(example), options_.seq_len, options_.overlong, counts_);
  for (const EncodedExample& window : windows) keep(window, marks);
  return !windows.empty();
}

void EncodedExamples::add(EncodedPair pair) {
  check_ids(pair.chosen);
  check_ids(pair.rejected);
  const auto kept = trained_pair(std::move(pair), options_.seq_len, options_.overlong, counts_);
  if (!kept) return;
  keep(kept->chosen);
  keep(kept->rejected);
}

void EncodedExamples::leave_out_equal(const std::string& place) {
  EncodedPair pair;
  pair.are_equal = true;
  pair.chosen.place = place;
  add(std::move(pair));
}

EncodedChunk EncodedExamples::take() {
  EncodedChunk chunk;
  chunk.ids = std::move(tokens_);
  chunk.notes.resize(count_words);
  std::memcpy(chunk.notes.data(), &counts_, sizeof counts_);
  chunk.notes.push_back(static_cast<std::uint32_t>(lengths_.size()));
  for (const auto* each : {&lengths_, &trained_, &numbers_})
    chunk.notes.insert(chunk.notes.end(), each->begin(), each->end());
  return chunk;
}

ExampleNotes ExampleNotes::read(const std::vector<std::uint32_t>& notes) {
  ExampleNotes all;
  for (auto place = notes.begin(); place != notes.end();) {
    const auto left = notes.end() - place;
    ZERO_CHECK(left > static_cast<std::ptrdiff_t>(count_words) &&
                   left - count_words - 1 >= 3 * std::size_t{place[count_words]},
               "notes of examples end too early");
    ExampleCounts counts;
    std::memcpy(static_cast<void*>(&counts), &*place, sizeof counts);
    all.counts += counts;
    const auto kept = static_cast<std::ptrdiff_t>(place[count_words]);
    place += count_words + 1;
    for (auto* each : {&all.lengths, &all.trained, &all.numbers}) {
      each->insert(each->end(), place, place + kept);
      place += kept;
    }
  }
  return all;
}

CacheRecipe example_recipe(const std::string& path, std::shared_ptr<const ConversationEncoder> encoder,
                           const Fingerprint& encoding, const ConversationRowsOptions& options) {
  CacheRecipe recipe;
  recipe.source = path;
  // Packing is not part of the fingerprint, since it only arranges the kept examples.
  recipe.rule = fingerprint_of(text(rule_of(options.use), "; ", hex(encoding), "; ", options.seq_len, " ",
                                    static_cast<int>(options.overlong), " ", options.vocab_size));
  recipe.width = TokenWidth::uint32;
  const ExampleForm form = form_of(path);
  cut_examples(recipe, form);
  recipe.encode = [encoder = std::move(encoder), path, form, options](const SourceChunk& chunk) {
    EncodedExamples kept(options);
    for_each_example(chunk, path, form, [&](std::string_view json, const std::string& place) {
      add_example(kept, options.use, *encoder, json, place);
    });
    return kept.take();
  };
  return recipe;
}

Fingerprint fingerprint_of(const Tokenizer& tokenizer, const EncoderOptions& options) {
  const TokenizerSource source{tokenizer.model_path(), options.model_directory, options.chat_template};
  std::string all = text("tokenizer ", tokenizer.hash(), "; train on ", static_cast<int>(options.train_on), "; ",
                         encoding_rules_of(source), "; templates ", chat_templates_mark(source));
  const std::string merges = tokenizer_home(tokenizer.model_path()) + "/tokenizer.json";
  if (is_file(merges)) all += text("; merges ", hex(fingerprint_of_file(merges)));
  return fingerprint_of(all);
}

}  // namespace zero
