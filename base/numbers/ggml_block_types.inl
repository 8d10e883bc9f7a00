// Every block type of ggml once: BLOCK_TYPE(enumerator of GgmlType, struct of ggml_codes.h).
BLOCK_TYPE(q8_0, Q8_0)
BLOCK_TYPE(q4_0, Q4_0)
BLOCK_TYPE(q4_1, Q4_1)
BLOCK_TYPE(q5_0, Q5_0)
BLOCK_TYPE(q5_1, Q5_1)
BLOCK_TYPE(q2_k, Q2_K)
BLOCK_TYPE(q3_k, Q3_K)
BLOCK_TYPE(q4_k, Q4_K)
BLOCK_TYPE(q5_k, Q5_K)
BLOCK_TYPE(q6_k, Q6_K)
BLOCK_TYPE(iq4_nl, IQ4_NL)
BLOCK_TYPE(iq4_xs, IQ4_XS)
#undef BLOCK_TYPE
