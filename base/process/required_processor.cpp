// Compiled for any x86-64 processor, unlike all other sources. It calls no inline function of a header: the linker
// might take the copy of another source.
#include "base/process/required_processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <string.h>
#include <unistd.h>
#endif

namespace zero {
namespace {

struct Needed {
  std::uint32_t ProcessorWords::*word;
  std::uint32_t bits;
  const char* name;
};

constexpr Needed needed[] = {
    {&ProcessorWords::features, 1u << 28, "AVX"},
    {&ProcessorWords::saved, 6, "AVX, because its system does not save the vectors"},
    {&ProcessorWords::extended, 1u << 5, "AVX2"},
    {&ProcessorWords::features, 1u << 12, "FMA"},
    {&ProcessorWords::features, 1u << 29, "F16C"},
    {&ProcessorWords::features, 1u << 22, "MOVBE"},
    {&ProcessorWords::extended, 1u << 3, "BMI1"},
    {&ProcessorWords::extended, 1u << 8, "BMI2"},
    {&ProcessorWords::more, 1u << 5, "LZCNT"},
};

}  // namespace

const char* missing_instructions(const ProcessorWords& words) {
  for (const Needed& one : needed)
    if ((words.*one.word & one.bits) != one.bits) return one.name;
  return nullptr;
}

#if defined(__x86_64__)
namespace {

constexpr std::uint32_t has_saved = 1u << 27;  // OSXSAVE
constexpr int refused = 2;

ProcessorWords own_words() {
  ProcessorWords words;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d)) words.features = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) words.extended = b;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) words.more = c;
  if (words.features & has_saved) __asm__ volatile("xgetbv" : "=a"(words.saved), "=d"(d) : "c"(0));
  return words;
}

void say(const char* words) {
  if (write(STDERR_FILENO, words, strlen(words)) < 0) _exit(refused);
}

/// Runs before all other code of the program: of its sources, only libraries' were initialised before.
__attribute__((constructor(101))) void require_processor() {
  const char* const missing = missing_instructions(own_words());
  if (!missing) return;
  say("error: this processor has no ");
  say(missing);
  say(", and the programs of zero need AVX2, FMA, F16C, MOVBE, BMI and LZCNT: use a processor with them (Intel Haswell, "
      "AMD Zen or newer); a virtual machine must pass its host's features on\n");
  _exit(refused);
}

}  // namespace
#endif

}  // namespace zero
