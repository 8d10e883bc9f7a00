#pragma once
// DecoderNames: a family's names for the parts of a decoder, and how its projections are fused. An empty name means
// that the part is absent. Does not include LibTorch.
#include <string>
#include <vector>

namespace zero {

/// Names of modules. A weight is "MODULE.weight". Modules of a block follow "LAYERS.N.". The defaults are Llama's.
struct DecoderNames {
  std::string embedding = "model.embed_tokens";
  std::string positions;  // learned positions
  std::string layers = "model.layers";
  std::string final_norm = "model.norm";
  std::string head = "lm_head";

  std::string before_attention = "input_layernorm", after_attention;  // norms; the second precedes the sum
  std::string before_mlp = "post_attention_layernorm", after_mlp;
  std::vector<std::string> qkv = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};  // or one for all
  std::string q_norm = "self_attn.q_norm", k_norm = "self_attn.k_norm";
  std::string attention_output = "self_attn.o_proj";
  std::vector<std::string> mlp_input = {"mlp.gate_proj", "mlp.up_proj"};  // or one name, if fused or not gated
  std::string mlp_output = "mlp.down_proj";
  bool input_first = false;  // projections are stored [in, out], like GPT-2's Conv1D
};

}  // namespace zero
