#include "bench/report.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/format.h"

namespace belljar::bench {
namespace {

std::string number(double value) { return value >= 100 ? format("{:.0f}", value) : format("{:.1f}", value); }

std::string quantity(double value, const std::string& unit) {
  if (unit != "us") return number(value) + " " + unit;
  if (value >= 1e6) return format("{:.2f} s", value / 1e6);
  if (value >= 1000) return format("{:.2f} ms", value / 1000);
  return number(value) + " us";
}

std::string verdict(const Row& row) {
  if (row.target == 0) return "";
  const bool by_ratio = row.ratio != 0;
  const double have = by_ratio ? row.ratio : row.p50;
  const std::string bound = by_ratio ? format("{:.2f}", row.target) : quantity(row.target, row.unit);
  return (have <= row.target ? "reached: <= " : "MISSED: <= ") + bound;
}

std::string ratio_text(const Row& row) { return row.ratio == 0 ? "" : format("{:.2f} x {}", row.ratio, row.against); }

std::string json_text(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result.push_back('\\');
    if (static_cast<unsigned char>(c) >= 0x20) result.push_back(c);
  }
  return result + '"';
}

// From "## name" to the next heading of that level, or at the end where there was none.
void put_section(std::string& page, const std::string& name, const std::string& text) {
  const std::string heading = "\n## " + name;
  const std::size_t from = page.find(heading + "\n");
  if (from == std::string::npos) {
    page += heading + text;
    return;
  }
  const std::size_t next = page.find("\n## ", from + 1);
  page.replace(from, next == std::string::npos ? next : next - from, heading + text);
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

}  // namespace

void Report::add(std::string group, std::string name, const Samples& samples) {
  Row row;
  row.group = std::move(group);
  row.name = std::move(name);
  row.p50 = samples.p50();
  row.p99 = samples.p99();
  row.runs = static_cast<int>(samples.us.size());
  rows.push_back(std::move(row));
}

Row* Report::find(const std::string& group, const std::string& name) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.group == group && row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

void Report::compare_rows(const std::string& group, const std::string& name, const std::string& against, double target) {
  Row* row = find(group, name);
  const Row* other = find(group, against);
  if (row == nullptr || other == nullptr || other->p50 == 0) return;
  row->ratio = row->p50 / other->p50;
  row->against = against;
  row->target = target;
}

std::string circumstances() {
  utsname system{};
  ::uname(&system);
  double load[3] = {0, 0, 0};
  ::getloadavg(load, 3);
  const int scheduling = ::sched_getscheduler(0);
  return format("Linux {}, {} processors, load {:.1f}, {}, {}", system.release, ::sysconf(_SC_NPROCESSORS_ONLN), load[0],
                scheduling == SCHED_FIFO ? "SCHED_FIFO (chrt)" : "normal scheduling", ::geteuid() == 0 ? "as root" : "as a user");
}

std::string to_table(const Report& report) {
  std::string text = circumstances() + "\n";
  std::string group;
  for (const Row& row : report.rows) {
    if (row.group != group) {
      group = row.group;
      text += format("\n{}{}{}{}\n", padded(group, 44), padded("p50", 12), padded("p99", 12), "ratio, target");
    }
    text += "  " + padded(row.name, 42) + padded(quantity(row.p50, row.unit), 12) +
            padded(row.runs > 1 ? quantity(row.p99, row.unit) : "", 12) + ratio_text(row);
    if (const std::string met = verdict(row); !met.empty()) text += (row.ratio != 0 ? "  " : "") + met;
    text += "\n";
  }
  for (const std::string& line : report.left_out) text += "left out: " + line + "\n";
  return text;
}

std::string to_json(const Report& report) {
  std::string text = "{\"where\": " + json_text(circumstances()) + ",\n \"rows\": [";
  const char* comma = "\n";
  for (const Row& row : report.rows) {
    text += format("{}  {{\"group\": {}, \"name\": {}, \"unit\": {}, \"p50\": {:.1f}, \"p99\": {:.1f}, \"runs\": {}", comma,
                   json_text(row.group), json_text(row.name), json_text(row.unit), row.p50, row.p99, row.runs);
    if (row.ratio != 0) text += format(", \"ratio\": {:.3f}, \"against\": {}", row.ratio, json_text(row.against));
    if (row.target != 0) text += format(", \"target\": {:.2f}", row.target);
    text += "}";
    comma = ",\n";
  }
  text += "\n ],\n \"left_out\": [";
  comma = "";
  for (const std::string& line : report.left_out) text += comma + json_text(line), comma = ", ";
  return text + "]}\n";
}

std::string to_markdown(std::string page, const Report& report, const std::string& command) {
  const std::string made = "\n\nMade by `" + command + "`: " + circumstances() + ".\n\n";
  if (page.empty()) page = "# Benchmarks\n";
  for (auto row = report.rows.begin(); row != report.rows.end();) {
    const std::string group = row->group;
    std::string text = made + "| what | p50 | p99 | runs | ratio | target |\n| --- | ---: | ---: | ---: | --- | --- |\n";
    for (; row != report.rows.end() && row->group == group; ++row) {
      text += format("| {} | {} | {} | {} | {} | {} |\n", row->name, quantity(row->p50, row->unit),
                     row->runs > 1 ? quantity(row->p99, row->unit) : "", row->runs, ratio_text(*row), verdict(*row));
    }
    put_section(page, group, text);
  }
  std::string left_out;
  for (const std::string& line : report.left_out) left_out += "- " + line + "\n";
  if (!left_out.empty()) put_section(page, "left out", "\n\nOf the last run:\n\n" + left_out);
  return page;
}

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
