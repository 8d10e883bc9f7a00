#include "zero/prove/proof.h"

namespace zero {

LayoutVerdict judge(const Layout& layout, const std::map<std::string, RunRecord>& records, const RoundingBounds& bounds,
                    const std::string& reference_precision) {
  LayoutVerdict verdict;
  verdict.layout = layout;
  const RunRecord& run = records.at(layout.name);
  // If the run that must have the same bits is missing, compares with the reference.
  const bool wants_bits = !layout.same_as.empty() && records.contains(layout.same_as);
  verdict.against = wants_bits ? layout.same_as : layout.arithmetic() == reference_precision ? "reference" : "probe";
  const auto differs = [&](std::optional<Parting> parting) {
    if (!parting || verdict.parting) return;
    verdict.parting = std::move(parting);
  };
  differs(first_contradiction(run));
  if (!layout.begins_as.empty() && records.contains(layout.begins_as))
    differs(wrong_start(run, records.at(layout.begins_as)));
  if (layout.name == "reference") {
    verdict.agreement = verdict.parting ? Agreement::different : Agreement::reference;
    return verdict;
  }
  const RunRecord& other = records.at(verdict.against);
  const std::optional<Parting> bit = first_other_bit(run, other);
  if (wants_bits) {
    differs(bit);
    // Runs could share an error, so only the comparison with the reference decides.
    const std::string base = layout.arithmetic() == reference_precision ? "reference" : "probe";
    differs(within_rounding(run, records.at(base), bounds, layout.arithmetic()).parting);
    verdict.agreement = verdict.parting ? Agreement::different : Agreement::bits;
    return verdict;
  }
  const RoundingVerdict rounding = within_rounding(run, other, bounds, layout.arithmetic());
  differs(rounding.parting);
  verdict.most = rounding.most;
  verdict.most_of = rounding.most_of;
  verdict.agreement = verdict.parting ? Agreement::different : bit ? Agreement::rounding : Agreement::bits;
  return verdict;
}

}  // namespace zero
