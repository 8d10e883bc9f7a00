// Every pair of types of few_rows.h once: FEW_ROWS(name, type of the weight, type of y).
FEW_ROWS(fp32_to_fp32, float, float)
FEW_ROWS(bf16_to_bf16, Bf16, Bf16)
FEW_ROWS(bf16_to_fp32, Bf16, float)
FEW_ROWS(fp16_to_bf16, Fp16, Bf16)
FEW_ROWS(fp16_to_fp32, Fp16, float)
#undef FEW_ROWS
