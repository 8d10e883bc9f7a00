#pragma once
// DPO and its variants: the answers' log-probabilities, compared with those under a reference model.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/loss/loss.h"

namespace zero {

/// The named tensor [B, 2] that DPO reads: log p of both answers under the reference model.
inline constexpr const char* reference_name = "reference_log_probabilities";

struct DpoOptions {
  std::vector<std::pair<std::string, double>> terms = {{"sigmoid", 1.0}};  // names from dpo_terms(), and their weights
  double beta = 0.1;
  double label_smoothing = 0;
};

/// The names of terms, as TRL's loss_type. With r = log p - reference, rewards beta r, and the margin m = beta
/// (r chosen - r rejected):
/// - "sigmoid": -(1 - s) log sigmoid(m) - s log sigmoid(-m), with s = label_smoothing (Rafailov et al. 2023, and cDPO)
/// - "robust": the unbiased form of it for labels of which the share s is wrong (Chowdhury et al. 2024)
/// - "sigmoid_norm": "sigmoid", with r divided by the answer's number of tokens
/// - "hinge": max(0, 1 - m) (SLiC, Zhao et al. 2023)
/// - "ipo": (d - 1 / (2 beta))^2, where d is the difference of r, each divided by the answer's number of tokens (Azar
///   et al. 2024)
/// - "exo_pair": the reverse divergence of Ji et al. 2024
/// - "nca_pair": -log sigmoid(beta r chosen) - (log sigmoid(-beta r chosen) + log sigmoid(-beta r rejected)) / 2
/// - "bco_pair": -log sigmoid(beta r chosen) - log sigmoid(-beta r rejected)
/// - "sppo_hard": (r chosen - 1 / (2 beta))^2 + (r rejected + 1 / (2 beta))^2
/// - "apo_zero", "apo_down": anchored preference optimisation (D'Oosterlinck et al. 2024)
/// - "sft": the mean of -log p over the tokens of all chosen answers of the step
std::vector<std::string> dpo_terms();

/// The weighted sum of the terms (models/loss/pair_loss.h). Throws InputError for an unknown term.
std::unique_ptr<Loss> dpo_loss(const DpoOptions& options);

}  // namespace zero
