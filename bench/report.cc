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

std::string quantity(double value, const std::string& unit) {
  if (unit != "us") return number(value) + " " + unit;
  if (value >= 1e6) return format("{:.2f} s", value / 1e6);
  if (value >= 1000) return format("{:.2f} ms", value / 1000);
  return number(value) + " us";
}

void Report::add(std::string group, std::string name, const Samples& samples) {
  Row row;
  row.group = std::move(group);
  row.name = std::move(name);
  row.p50 = samples.p50();
  row.p99 = samples.p99();
  if (samples.us.size() > 1) row.p10 = samples.percentile(0.10), row.p90 = samples.percentile(0.90);
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
  std::string text = report.where + "\n";
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
  std::string text = "{\"where\": " + json_text(report.where) + ",\n \"rows\": [";
  const char* comma = "\n";
  for (const Row& row : report.rows) {
    text += format("{}  {{\"group\": {}, \"name\": {}, \"unit\": {}, \"p50\": {:.3f}, \"p99\": {:.3f}, \"runs\": {}", comma,
                   json_text(row.group), json_text(row.name), json_text(row.unit), row.p50, row.p99, row.runs);
    if (row.p10 != 0 || row.p90 != 0) text += format(", \"p10\": {:.3f}, \"p90\": {:.3f}", row.p10, row.p90);
    if (row.ratio != 0) text += format(", \"ratio\": {:.3f}, \"against\": {}", row.ratio, json_text(row.against));
    if (row.target != 0) text += format(", \"target\": {:.2f}", row.target);
    if (!row.where.empty()) text += ", \"where\": " + json_text(row.where);
    text += "}";
    comma = ",\n";
  }
  text += "\n ],\n \"left_out\": [";
  comma = "";
  for (const std::string& line : report.left_out) text += comma + json_text(line), comma = ", ";
  return text + "]}\n";
}

std::string to_markdown(std::string page, const Report& report, const std::string& command) {
  const std::string made = "\n\nMade by `" + command + "`: " + report.where + ".\n\n";
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

}  // namespace belljar::bench
