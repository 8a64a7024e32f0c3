// The drawing: a panel below the other, a bar for each row; p50 as the bar, p99 as the whisker.
#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/format.h"
#include "bench/compare.h"
#include "bench/report.h"

namespace belljar::bench {
namespace {

// Rows of `group` whose name begins with `start`; `label` stands for that beginning. Lines with one title, which stand together,
// make one panel; its first word names it below. A panel without rows is left out.
struct Source {
  const char *title, *group, *start, *label;
};
constexpr const char* kFileWork = "Files: work in a workspace, outside and inside a sandbox";
constexpr const char* kDensity = "Density: memory of an idle sandbox";
constexpr const char* kBursts = "Burst: 100 sandboxes at once, until each has run its first command";
constexpr Source kSources[] = {
    {"Start: run /bin/true in a sandbox, the whole process", "process", "", ""},
    {kFileWork, "trees", "tar, 30 000 files", "unpack 30 000 files"},
    {kFileWork, "trees", "git clone, 10 000 files", "clone 10 000 files"},
    {kFileWork, "work", "10 x git status, 10 000 files", "10 x git status"},
    {kFileWork, "work", "g++, 4 files", "compile 4 files"},
    {kBursts, "burst", "100 taken from a pool, first command", "belljar, from a pool"},
    {kBursts, "burst", "100 made, first command", "belljar, made then"},
    {kBursts, "burst", "100 x bwrap at once", "bwrap"},
    {kBursts, "burst", "100 x crun at once", "crun"},
    {kBursts, "burst", "100 x docker at once", "docker"},
    {kDensity, "burst", "memory of one of 300 idle", "belljar"},
    {kDensity, "burst", "memory of one of 300 x bwrap -- sleep", "bwrap"},
};

constexpr int kWidth = 820, kRight = 200, kBar = 18, kStep = 27, kTitle = 44;

struct Bar {
  const Row* row;
  std::string label;
};

struct Panel {
  std::string title;
  std::vector<Bar> bars;
};

std::string xml_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') result += "&amp;";
    else if (c == '<') result += "&lt;";
    else result.push_back(c);
  }
  return result;
}

std::vector<Panel> panels_of(const Report& report) {
  std::vector<Panel> panels;
  for (const Source& source : kSources) {
    for (const Row& row : report.rows) {
      if (row.group != source.group || !row.name.starts_with(source.start)) continue;
      if (panels.empty() || panels.back().title != source.title) panels.push_back({source.title, {}});
      panels.back().bars.push_back({&row, source.label + row.name.substr(std::string(source.start).size())});
    }
  }
  return panels;
}

bool is_accented(const std::string& label) { return label.find("belljar") != std::string::npos || label.ends_with("inside"); }

// Rows of one panel may have units of one kind: so many of the smallest are in one.
double in_smallest(const std::string& unit) {
  if (unit == "ms") return 1000;
  if (unit == "s") return 1e6;
  return unit == "MiB" ? 1024 : 1;
}

// Of 14 pixels, as wide as the widest of usual fonts has it.
int text_width(const std::string& text) { return static_cast<int>(text.size()) * 8; }

std::string draw_bar(const Bar& bar, int left, int y, double longest) {
  const Row& row = *bar.row;
  const auto x = [&](double value) {
    return left + (kWidth - left - kRight) * std::clamp(value * in_smallest(row.unit) / longest, 0.0, 1.0);
  };
  const bool ours = is_accented(bar.label), whisker = row.runs > 1;
  std::string svg = format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\"{}>{}</text>\n", left - 10, y + 14,
                           ours ? " font-weight=\"600\"" : "", xml_text(bar.label));
  svg += format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" rx=\"3\"/>\n", ours ? "ours" : "other", left,
                y, x(row.p50) - left, kBar);
  if (whisker)
    svg += format("<line class=\"whisker\" x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\"/>\n", x(row.p50), y + kBar / 2,
                  x(row.p99), y + kBar / 2);
  svg += format("<text x=\"{:.1f}\" y=\"{}\">{}", std::max(whisker ? x(row.p99) : 0, x(row.p50)) + 10, y + 14,
                xml_text(quantity(row.p50, row.unit)));
  if (whisker) svg += format("  <tspan class=\"note\">p99 {}</tspan>", xml_text(quantity(row.p99, row.unit)));
  return svg + "</text>\n";
}

std::string draw_panel(const Panel& panel, int left, int& y) {
  double longest = 0;
  for (const Bar& bar : panel.bars) longest = std::max(longest, bar.row->p50 * 1.3 * in_smallest(bar.row->unit));
  std::string svg = format("<text class=\"title\" x=\"16\" y=\"{}\">{}</text>\n", y + 29, xml_text(panel.title));
  y += kTitle;
  for (const Bar& bar : panel.bars) {
    svg += draw_bar(bar, left, y, std::max(longest, 1e-9));
    y += kStep;
  }
  return svg;
}

// Under which circumstances which panels were measured: a line, or more where they differ.
std::vector<std::string> notes_of(const Report& report, const std::vector<Panel>& panels) {
  std::map<std::string, std::string> names;
  for (const Panel& panel : panels) {
    const std::string name = panel.title.substr(0, panel.title.find(':'));
    for (const Bar& bar : panel.bars) {
      std::string& those = names[bar.row->where.empty() ? report.where : bar.row->where];
      if (!those.ends_with(name)) those += (those.empty() ? "" : ", ") + name;
    }
  }
  std::vector<std::string> notes;
  for (const auto& [where, those] : names) notes.push_back(names.size() == 1 ? where : those + ": " + where);
  return notes;
}

}  // namespace

std::string to_svg(const Report& report) {
  const std::vector<Panel> panels = panels_of(report);
  if (panels.empty()) return "";
  int left = 110;
  for (const Panel& panel : panels) {
    for (const Bar& bar : panel.bars) left = std::max(left, std::min(text_width(bar.label) + 26, kWidth / 2));
  }
  int y = 52;
  std::string body;
  for (const Panel& panel : panels) body += draw_panel(panel, left, y);
  y += 24;
  for (const std::string& note : notes_of(report, panels)) {
    body += format("<text class=\"note\" x=\"16\" y=\"{}\">{}</text>\n", y, xml_text(note));
    y += 18;
  }
  const std::string head = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
      "aria-label=\"Belljar beside its peers\">\n<style>\n"
      "text {{ font: 14px system-ui, sans-serif; fill: #1f2328 }} .head {{ font-weight: 600; font-size: 16px }}\n"
      ".title {{ font-weight: 600 }} .note {{ font-size: 12px; fill: #59636e }} .ground {{ fill: #ffffff }}\n"
      ".other {{ fill: #9aa4af }} .ours {{ fill: #1a7f64 }} .whisker {{ stroke: #59636e; stroke-width: 1.5 }}\n"
      "@media (prefers-color-scheme: dark) {{ text {{ fill: #e6edf3 }} .note {{ fill: #9198a1 }} .ground {{ fill: #0d1117 }}\n"
      "  .other {{ fill: #59636e }} .ours {{ fill: #3fb68b }} .whisker {{ stroke: #9198a1 }} }}\n</style>\n"
      "<rect class=\"ground\" width=\"{0}\" height=\"{1}\" rx=\"8\"/>\n"
      "<text class=\"head\" x=\"16\" y=\"28\">Belljar beside its peers</text>\n"
      "<text class=\"note\" x=\"16\" y=\"47\">bar: median; line: 99th percentile (cut at the right edge); shorter is "
      "better</text>\n",
      kWidth, y);
  return head + body + "</svg>\n";
}

}  // namespace belljar::bench
