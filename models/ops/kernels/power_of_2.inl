// Exponentials of 16 numbers. Included inside an anonymous namespace.

/// Polynomials of 2^x, highest power first: 1 at 0, and nearly the least relative error for x from 0 to 1 (Remez). That
/// is 1e-7, and 3e-6 where results become bf16.
template <class T>
constexpr std::array power_terms{1.8671300e-3f, 9.0170307e-3f, 5.5799913e-2f, 2.4016444e-1f, 6.9315130e-1f, 1.0f};
template <>
constexpr std::array power_terms<Bf16>{1.3426684e-2f, 5.2242473e-2f, 2.4128020e-1f, 6.9304484e-1f, 1.0f};

/// 2^x, and 0 below the smallest number; NaN stays NaN.
template <class T>
HWY_INLINE __m512 power_of_2(__m512 x) {
  const __m512 rest = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  __m512 p = _mm512_set1_ps(power_terms<T>[0]);
  for (std::size_t i = 1; i < power_terms<T>.size(); ++i)
    p = _mm512_fmadd_ps(p, rest, _mm512_set1_ps(power_terms<T>[i]));
  return _mm512_scalef_ps(p, x);
}

constexpr float log2_e = 1.44269504088896341f, ln_2 = 0.693147180559945309f;
