#pragma once
// DecoderNames: what a family calls the parts of a decoder, and how the projections are cut. An empty name: there is no
// such part. No LibTorch.
#include <string>
#include <vector>

namespace zero {

/// Modules; a weight is "MODULE.weight". Those of a block stand behind "LAYERS.N.". What is preset is Llama's.
struct DecoderNames {
  std::string embedding = "model.embed_tokens";
  std::string positions;  // where they are learned
  std::string layers = "model.layers";
  std::string final_norm = "model.norm";
  std::string head = "lm_head";

  std::string before_attention = "input_layernorm", after_attention;  // norms, the second before the sum
  std::string before_mlp = "post_attention_layernorm", after_mlp;
  std::vector<std::string> qkv = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};  // or one of all three
  std::string q_norm = "self_attn.q_norm", k_norm = "self_attn.k_norm";
  std::string attention_output = "self_attn.o_proj";
  std::vector<std::string> mlp_input = {"mlp.gate_proj", "mlp.up_proj"};  // or one of both, or of what is not gated
  std::string mlp_output = "mlp.down_proj";
  bool input_first = false;  // projections are stored [in, out], as GPT-2's Conv1D
};

}  // namespace zero
