#include "bench/compare.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/read_file.h"
#include "base/unique_fd.h"
#include "bench/report.h"

namespace belljar::bench {
namespace {

using ReportJson = nlohmann::json;

constexpr std::size_t kMostBytes = 16U << 20;
constexpr const char* kNext = "name a file that `belljar bench --json FILE` wrote; to --json, also one that is not there yet";
constexpr double kLeastChange = 1.1;
constexpr double kRounding = 0.05;  // versions that knew no p10 wrote medians in tenths

Error no_report(const std::string& name, std::string reason) {
  return Error(Code::kInvalidArgument, "cannot take " + quoted(name) + " for an earlier report")
      .reason(std::move(reason))
      .next(kNext);
}

std::string text_of(const ReportJson& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

double number_of(const ReportJson& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::optional<Row> row_from(const ReportJson& object) {
  if (!object.is_object() || !object.contains("p50") || !object["p50"].is_number()) return {};
  Row row;
  row.group = text_of(object, "group");
  row.name = text_of(object, "name");
  row.unit = text_of(object, "unit");
  row.p50 = number_of(object, "p50");
  row.p99 = number_of(object, "p99");
  row.p10 = number_of(object, "p10");
  row.p90 = number_of(object, "p90");
  row.runs = static_cast<int>(std::clamp(number_of(object, "runs"), 0.0, 1e9));
  row.ratio = number_of(object, "ratio");
  row.against = text_of(object, "against");
  row.target = number_of(object, "target");
  row.where = text_of(object, "where");
  if (row.group.empty() || row.name.empty()) return {};
  return row;
}

const Row* row_in(const Report& report, const std::string& group, const std::string& name) {
  const auto found =
      std::find_if(report.rows.begin(), report.rows.end(), [&](const Row& row) { return row.group == group && row.name == name; });
  return found == report.rows.end() ? nullptr : &*found;
}

// The same row of another report.
const Row* twin(const Row& row, const Report& report) {
  const Row* found = row_in(report, row.group, row.name);
  return found != nullptr && found->unit == row.unit ? found : nullptr;
}

std::set<std::string> groups_of(const Report& report) {
  std::set<std::string> groups;
  for (const Row& row : report.rows) groups.insert(row.group);
  return groups;
}

const std::string& where_of(const Report& report, const Row& row) { return row.where.empty() ? report.where : row.where; }

std::vector<std::string> pieces_of(const std::string& where) {
  std::vector<std::string> pieces;
  for (std::size_t from = 0; from < where.size();) {
    const std::size_t end = std::min(where.find(", ", from), where.size());
    std::string piece = where.substr(from, end - from);
    if (!piece.starts_with("load ")) pieces.push_back(std::move(piece));
    from = end + 2;
  }
  return pieces;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

// Of `words`, those that `others` lack.
std::string only_in(const std::vector<std::string>& words, const std::vector<std::string>& others) {
  std::vector<std::string> own;
  for (const std::string& word : words) {
    if (std::find(others.begin(), others.end(), word) == others.end()) own.push_back(word);
  }
  return own.empty() ? "not told" : joined(own);
}

// A rate; all else is time or room that something takes.
bool more_is_better(const Row& row) { return row.unit.ends_with("/s") || row.unit.ends_with("per second"); }

// Of a row that is ours and stands beside its peers.
bool is_ours(const std::string& name) { return name.ends_with("belljar"); }

// How far single measurements lie above and below their median, as factors.
struct Spread {
  double up = 1, down = 1;
};

Spread spread_of(const Row& row) {
  if (row.p10 == 0 && row.p90 == 0) return {1 + kRounding / row.p50, 1 + kRounding / row.p50};
  return {row.p90 / row.p50, row.p10 <= 0 ? std::numeric_limits<double>::infinity() : row.p50 / row.p10};
}

// Of the row's ratio, which falls where its peer rises.
Spread spread_of_ratio(const Row& row, const Report& report) {
  Spread spread = spread_of(row);
  if (const Row* peer = row_in(report, row.group, row.against); peer != nullptr && peer->p50 > 0) {
    const Spread other = spread_of(*peer);
    spread = {std::max(spread.up, other.down), std::max(spread.down, other.up)};
  }
  return spread;
}

struct Change {
  const Row* now;
  const Row* then;
  bool by_ratio;
  double factor;  // now / then
  double noise;   // above this, or below its inverse, it counts
  double worse() const { return more_is_better(*now) ? 1 / factor : factor; }
};

// nullopt: zero, or a difference below it; there is no ratio of such.
std::optional<Change> change_of(const Report& now, const Row& row, const Report& then, const Row& before) {
  if (row.p50 <= 0 || before.p50 <= 0) return {};
  // A peer's ratio against ours says how we did, upside down.
  const bool by_ratio = row.ratio > 0 && before.ratio > 0 && row.against == before.against && !is_ours(row.against);
  const double factor = by_ratio ? row.ratio / before.ratio : row.p50 / before.p50;
  const Spread here = by_ratio ? spread_of_ratio(row, now) : spread_of(row);
  const Spread there = by_ratio ? spread_of_ratio(before, then) : spread_of(before);
  const double noise = factor > 1 ? std::max({kLeastChange, there.up, here.down}) : std::max({kLeastChange, there.down, here.up});
  return Change{&row, &before, by_ratio, factor, noise};
}

std::string line_of(const Change& change) {
  const std::string what =
      change.by_ratio
          ? format("{:.2f} -> {:.2f} x {}", change.then->ratio, change.now->ratio, change.now->against)
          : format("{} -> {}", quantity(change.then->p50, change.then->unit), quantity(change.now->p50, change.now->unit));
  return format("  {:<54} {:>6.2f} x   {} (noise: {:.2f} x)\n", escaped(change.now->group + ": " + change.now->name), change.factor,
                escaped(what), change.noise);
}

// The largest first.
std::string changes_text(const char* heading, std::vector<Change> changes) {
  if (changes.empty()) return format("{}: nothing\n", heading);
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return std::abs(std::log(a.factor)) > std::abs(std::log(b.factor)); });
  std::string text = format("{}\n", heading);
  for (const Change& change : changes) text += line_of(change);
  return text;
}

// `wheres`: of the rows of then.
std::string where_text(const Report& now, const std::set<std::string>& wheres) {
  std::string text;
  for (const std::string& where : wheres) text += "  then: " + escaped(where) + "\n";
  text += "  now:  " + now.where + "\n";
  const auto here = pieces_of(now.where);
  for (const std::string& where : wheres) {
    if (without_load(where) == without_load(now.where)) continue;
    const auto there = pieces_of(where);
    text += format("warning: circumstances differ: then {}; now {}. Trust ratios more than times.\n", escaped(only_in(there, here)),
                   only_in(here, there));
  }
  return text;
}

struct Compared {
  std::vector<Change> worse, better;
  Samples yardsticks;  // factors of what ratios are taken against
  std::size_t same = 0, without_ratio = 0, fresh = 0, unmeasured = 0;
  std::vector<std::string> lost;
  std::set<std::string> wheres, unmeasured_groups;
};

void put_change(const Report& now, const Row& row, const Report& then, const Row& before, Compared& compared) {
  compared.wheres.insert(where_of(then, before));
  const auto change = change_of(now, row, then, before);
  if (!change) ++compared.without_ratio;
  else if (change->worse() > change->noise) compared.worse.push_back(*change);
  else if (change->worse() < 1 / change->noise) compared.better.push_back(*change);
  else ++compared.same;
  const bool yardstick = std::any_of(now.rows.begin(), now.rows.end(), [&](const Row& other) {
    return other.group == row.group && other.against == row.name && !is_ours(row.name);
  });
  if (change && yardstick) compared.yardsticks.us.push_back(change->factor);
}

Compared compare_all(const Report& now, const Report& then) {
  Compared compared;
  for (const Row& row : now.rows) {
    if (const Row* before = twin(row, then)) put_change(now, row, then, *before, compared);
    else ++compared.fresh;
  }
  const auto measured = groups_of(now);
  for (const Row& row : then.rows) {
    if (!measured.contains(row.group)) compared.unmeasured_groups.insert(row.group), ++compared.unmeasured;
    else if (twin(row, now) == nullptr) compared.lost.push_back(row.group + ": " + row.name);
  }
  return compared;
}

}  // namespace

std::string without_load(const std::string& where) { return joined(pieces_of(where)); }

Result<Report> parse_report(std::string_view text, const std::string& name) {
  const ReportJson object = ReportJson::parse(text, nullptr, false);
  if (object.is_discarded()) return no_report(name, "it is not JSON, or not all of it is there");
  if (!object.is_object() || !object.contains("rows") || !object["rows"].is_array())
    return no_report(name, "it is JSON of something else: it has no list `rows`");
  Report report;
  report.where = text_of(object, "where");
  for (const ReportJson& one : object["rows"]) {
    auto row = row_from(one);
    if (!row) return no_report(name, format("entry {} of `rows` has no group, no name or no number `p50`", report.rows.size() + 1));
    report.rows.push_back(*std::move(row));
  }
  return report;
}

Result<Report> read_report(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto text = file.valid() ? read_at_most(file.get(), kMostBytes + 1) : std::nullopt;
  if (!text) {
    const int error = errno;
    return Error(Code::kNotFound, "cannot read the earlier report " + quoted(path))
        .sys(error, file.valid() ? "read" : "open")
        .next(kNext);
  }
  if (text->size() > kMostBytes) return no_report(path, "it is larger than 16 MiB");
  return parse_report(*text, path);
}

std::string to_comparison(const Report& now, const Report& then) {
  const Compared compared = compare_all(now, then);
  std::string text = where_text(now, compared.wheres);
  if (!compared.yardsticks.us.empty())
    text += format("what ratios are taken against: {:.2f} x, in the middle of {} rows. Times alone may be off by that.\n",
                   compared.yardsticks.p50(), compared.yardsticks.us.size());
  text += changes_text("slower or larger", compared.worse);
  text += changes_text("faster or smaller", compared.better);
  text += format("within noise: {} rows\n", compared.same);
  if (compared.without_ratio != 0) text += format("not compared, zero or less then or now: {} rows\n", compared.without_ratio);
  if (compared.fresh != 0) text += format("new: {} rows\n", compared.fresh);
  if (!compared.lost.empty()) text += format("no longer there: {} rows\n", compared.lost.size());
  for (const std::string& name : compared.lost) text += "  " + escaped(name) + "\n";
  if (compared.unmeasured != 0)
    text += format("not measured now: {} rows of {}\n", compared.unmeasured,
                   escaped(joined({compared.unmeasured_groups.begin(), compared.unmeasured_groups.end()})));
  return text;
}

Report merged(const Report& before, Report now) {
  const auto measured = groups_of(now);
  std::vector<Row> kept;
  for (const Row& row : before.rows) {
    if (measured.contains(row.group)) continue;
    kept.push_back(row);
    kept.back().where = where_of(before, row);
    if (without_load(kept.back().where) == without_load(now.where)) kept.back().where.clear();
  }
  now.rows.insert(now.rows.begin(), kept.begin(), kept.end());
  return now;
}

}  // namespace belljar::bench
