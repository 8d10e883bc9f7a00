#pragma once
// Evaluation: the loss of a model, perhaps with an adapter, on files of texts or conversations. Nothing is trained.
#include <string>
#include <vector>

#include "comm/world/job.h"
#include "zero/programs/model_source.h"

namespace zero {

struct EvaluationOptions {
  ModelPlace place;
  std::vector<std::string> files;      // as data.validation has them
  std::string chat_template;           // a known name or a file; empty: the run's, the adapter's or the model's own
  std::string train_on = "assistant";  // whose tokens count: assistant | all
  std::string token_dtype = "uint16";  // of .bin files
  std::string precision;               // of weights and arithmetic: fp32 | bf16 | fp16; empty: ModelSource::precision
  std::int64_t seq_len = 0;            // tokens of a sequence; 0: 1024, or the model's context where that is shorter
  std::string cache;                   // folder of token caches, seen by all nodes; empty: a temporary one
};

struct Evaluation {
  std::string file;
  double loss = 0;  // mean cross-entropy of the tokens that count, in nats
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;
  double perplexity() const;
};

/// Evaluates each file. The weights are sharded over the ranks as at stage 3, and so are the sequences; each sequence is computed by itself
/// and counted in order, so that the result has the same bits on any number of ranks and threads. Collective. InputError on
/// all ranks for a model, an adapter or a file that cannot be read, for a file without a token that counts, and for
/// texts on several nodes without `cache`.
std::vector<Evaluation> evaluate(Job& job, const EvaluationOptions& options);

}  // namespace zero
