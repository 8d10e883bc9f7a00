// The settings of optimizers, one line each, in the order of the documentation. All code that knows them expands these
// lines:
// - the fields that rules read,
// - configuration keys with their checks and documentation,
// - the settings that a resumed run must keep,
// - the settings of the library (docs/extending/setting.md).
//
// SETTING(type, field, default, key, takers, bound, on_resume, meaning)
//   type       double, bool or std::int64_t
//   field      name in RuleSettings, and in the library's structs that offer it
//   default    of rules whose row names no other
//   key        in [optimizer]; two lines in a row with one key are its two numbers, and the first has bound and meaning
//   takers     every_rule, or named_rules: those whose row names the key
//   bound      a function of zero::bounds (rule_settings.h)
//   on_resume  must_agree, or may_change: a resumed run may have another value
//   meaning    for docs/configuration.md, which adds the rules that take the key, and their own defaults
SETTING(double, lr, 1e-3, "lr", every_rule, not_negative(), must_agree, "Peak learning rate.")
SETTING(double, weight_decay, 0.1, "weight_decay", every_rule, not_negative(), must_agree,
        "Weight decay of tensors with two or more dimensions.")
SETTING(double, beta1, 0.9, "betas", named_rules, below_one(), must_agree,
        "decay rates of the two moments; for lion, of the update direction and of the moment.")
SETTING(double, beta2, 0.95, "betas", named_rules, below_one(), must_agree, "")
SETTING(double, eps, 1e-8, "eps", named_rules, above_zero(), must_agree,
        "added to the square root of the second moment.")
SETTING(double, momentum, 0.9, "momentum", named_rules, below_one(), must_agree, "decay rate of the sum of gradients.")
SETTING(bool, nesterov, true, "nesterov", named_rules, anything(), must_agree, "use Nesterov momentum.")
SETTING(double, d0, 1e-6, "d0", named_rules, above_zero(), must_agree, "the first estimate of the distance.")
SETTING(double, d_coef, 1.0, "d_coef", named_rules, above_zero(), must_agree, "factor that multiplies later estimates.")
SETTING(bool, use_bias_correction, false, "use_bias_correction", named_rules, anything(), must_agree,
        "use Adam's bias correction.")
SETTING(bool, safeguard_warmup, false, "safeguard_warmup", named_rules, anything(), must_agree,
        "a learning-rate warm-up does not keep the estimate low.")
SETTING(std::int64_t, ns_steps, 5, "ns_steps", named_rules, between(1, 100), must_agree,
        "steps of the Newton-Schulz iteration.")
SETTING(bool, ns_bf16, false, "ns_bf16", named_rules, anything(), must_agree,
        "compute the Newton-Schulz iteration in bf16, as the published rule does. GPUs always do.")
SETTING(double, lr_adamw, 3e-4, "lr_adamw", named_rules, not_negative(), must_agree,
        "peak learning rate of embeddings, head and vectors, which AdamW updates, with `betas` and `eps`.")
