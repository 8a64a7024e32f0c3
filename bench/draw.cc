#include <algorithm>
#include <string>
#include <vector>

#include "base/format.h"
#include "bench/report.h"

namespace belljar::bench {

// One bar per program: p50 as the bar, p99 as the whisker.
std::string to_svg(const Report& report) {
  std::vector<const Row*> shown;
  double longest = 0;
  for (const Row& row : report.rows) {
    if (row.group != "process") continue;
    shown.push_back(&row);
    longest = std::max(longest, row.p50 * 1.3);
  }
  if (shown.empty()) return "";
  constexpr int kWidth = 760, kLeft = 110, kRight = 190, kTop = 64, kStep = 34;
  const int height = kTop + kStep * static_cast<int>(shown.size()) + 34;
  const auto x = [&](double us) { return kLeft + (kWidth - kLeft - kRight) * std::min(us / longest, 1.0); };
  std::string svg = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" role=\"img\" "
      "aria-label=\"Time of a whole process that runs /bin/true\">\n<style>\n"
      "text {{ font: 14px system-ui, sans-serif; fill: #1f2328 }} .head {{ font-weight: 600; font-size: 16px }}\n"
      ".note {{ font-size: 12px; fill: #59636e }} .ground {{ fill: #ffffff }}\n"
      ".other {{ fill: #9aa4af }} .ours {{ fill: #1a7f64 }} .whisker {{ stroke: #59636e; stroke-width: 1.5 }}\n"
      "@media (prefers-color-scheme: dark) {{ text {{ fill: #e6edf3 }} .note {{ fill: #9198a1 }} .ground {{ fill: #0d1117 }}\n"
      "  .other {{ fill: #59636e }} .ours {{ fill: #3fb68b }} .whisker {{ stroke: #9198a1 }} }}\n</style>\n"
      "<rect class=\"ground\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n"
      "<text class=\"head\" x=\"16\" y=\"28\">Run /bin/true in a sandbox: whole process</text>\n"
      "<text class=\"note\" x=\"16\" y=\"47\">bar: median; line: 99th percentile (cut at the right edge); shorter is "
      "better</text>\n",
      kWidth, height, kWidth, height, kWidth, height);
  int y = kTop;
  for (const Row* row : shown) {
    const bool ours = row->name == "belljar";
    svg += format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\"{}>{}</text>\n", kLeft - 10, y + 19,
                  ours ? " font-weight=\"600\"" : "", row->name);
    svg += format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"22\" rx=\"3\"/>\n", ours ? "ours" : "other",
                  kLeft, y + 3, x(row->p50) - kLeft);
    svg += format("<line class=\"whisker\" x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\"/>\n", x(row->p50), y + 14, x(row->p99),
                  y + 14);
    svg += format("<text x=\"{:.1f}\" y=\"{}\">{}  <tspan class=\"note\">p99 {}</tspan></text>\n",
                  std::max(x(row->p99), x(row->p50)) + 10, y + 19, quantity(row->p50, row->unit), quantity(row->p99, row->unit));
    y += kStep;
  }
  svg += format("<text class=\"note\" x=\"16\" y=\"{}\">{}</text>\n</svg>\n", height - 12, circumstances());
  return svg;
}

}  // namespace belljar::bench
