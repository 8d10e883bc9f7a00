#pragma once
// Evaluation: computes the loss of a model, with or without an adapter, on files of texts or conversations, and judges
// its answers to pairs. It does not train.
#include <optional>
#include <string>
#include <vector>

#include "comm/world/job.h"
#include "zero/programs/model_source.h"
#include "zero/programs/preference_evaluation.h"

namespace zero {

struct EvaluationOptions {
  ModelPlace place;
  std::vector<std::string> files;      // as in data.validation
  std::string chat_template;           // a known name or a file; empty: the run's, the adapter's or the model's
  std::string train_on = "assistant";  // tokens that count: assistant | all
  std::string token_dtype = "uint16";  // .bin files
  std::string precision;               // of weights and arithmetic: fp32 | bf16 | fp16; empty: ModelSource::precision
  std::int64_t seq_len = 0;            // tokens of a sequence; 0: 1024, or the model's context if shorter
  std::string cache;                   // folder for token caches that all nodes see; empty: a temporary folder
  PreferenceOptions preference;        // for files of pairs or of judged answers
};

struct Evaluation {
  std::string file;
  double loss = 0;  // mean cross-entropy of the tokens that count, in nats; not for preferences
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;
  std::optional<PreferenceFigures> preference = {};  // of a file of pairs or of judged answers
  double perplexity() const;
};

/// Evaluates each file. A file whose first example is a pair or a judged answer is judged as a validation of a
/// preference run does; the reference is then computed first, and only one model is in memory at a time. Weights are
/// sharded over the ranks as at stage 3, and ranks share the sequences. Sequences are computed one by one and summed in
/// order, so results are the same bit for bit for any number of ranks and threads. Throws InputError on all ranks for
/// an unreadable model, adapter, reference or file, and for a file without a counted token. Also throws for texts on
/// several nodes without `cache`. Collective.
std::vector<Evaluation> evaluate(Job& job, const EvaluationOptions& options);

}  // namespace zero
