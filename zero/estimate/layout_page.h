#pragma once
// LayoutPage: the tables of docs/results/layouts.md.
#include <string>

namespace zero {

/// Returns the verdicts on features (rows) and axes (columns) as a Markdown table. Each cell is "yes", or the section
/// and key that rule out the layout.
std::string layout_table();

/// Returns illegal layouts with their error messages and the nearest legal layouts, in Markdown.
std::string refused_layouts();

}  // namespace zero
