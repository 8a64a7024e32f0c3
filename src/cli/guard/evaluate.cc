#include "cli/guard/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "policy/document.h"
#include "policy/json.h"

namespace belljar::cli {
namespace {

namespace fs = std::filesystem;

struct Share {
  int hits = 0, all = 0;
  void add(bool hit) { hits += hit ? 1 : 0, ++all; }
  void add(const Share& other) { hits += other.hits, all += other.all; }
  double rate() const { return all == 0 ? 0 : 1.0 * hits / all; }
  // The score interval of Wilson, 95 %.
  std::pair<double, double> interval() const {
    if (all == 0) return {0, 0};
    constexpr double kZ = 1.96;
    const double n = all, p = rate(), zz = kZ * kZ;
    const double middle = (p + zz / (2 * n)) / (1 + zz / n);
    const double reach = kZ * std::sqrt(p * (1 - p) / n + zz / (4 * n * n)) / (1 + zz / n);
    return {std::max(0.0, middle - reach), std::min(1.0, middle + reach)};
  }
};

struct TwoShares {
  Share flagged, twins;
  double net() const { return flagged.rate() - twins.rate(); }
  // Newcombe 1998, method 10: of the difference of two rates.
  std::pair<double, double> interval() const {
    const auto [low, high] = flagged.interval();
    const auto [twin_low, twin_high] = twins.interval();
    return {net() - std::hypot(flagged.rate() - low, twin_high - twins.rate()),
            net() + std::hypot(high - flagged.rate(), twins.rate() - twin_low)};
  }
};

// Attacks first, then by part and family.
using Key = std::tuple<bool, std::string, std::string>;
using Rates = std::map<Key, TwoShares>;
constexpr std::string_view kAll = "all";

std::string text_of(const policy::Node& row, std::string_view key) {
  const auto found = std::ranges::find(row.members, key, &policy::Member::key);
  return found != row.members.end() && found->value.kind == policy::Node::Kind::kText ? found->value.text : "";
}

detect::Options options_for(const std::string& file, detect::Options options) {
  if (detect::is_for_agents(file)) options.reader = detect::Reader::kAgent;
  return options;
}

void add_row(const policy::Node& row, detect::Options options, Rates& rates) {
  options = options_for(text_of(row, "file"), options);
  const auto flagged = [&](const std::string& text) { return detect::scan(text, options).suspicious(); };
  const bool attack = text_of(row, "label") == "attack";
  std::string family = text_of(row, "family");
  if (family.empty()) family = text_of(row, "kind");
  TwoShares one;
  one.flagged.add(flagged(text_of(row, "text")));
  if (const std::string twin = text_of(row, "twin"); attack && !twin.empty()) one.twins.add(flagged(twin));
  for (const std::string_view name : {std::string_view(family), kAll}) {
    if (name.empty()) continue;
    TwoShares& sum = rates[{!attack, text_of(row, "part"), std::string(name)}];
    sum.flagged.add(one.flagged), sum.twins.add(one.twins);
  }
}

Result<void> add_file(const std::string& name, const detect::Options& options, Rates& rates) {
  const std::string text = BELLJAR_TRY(read_text_file(name, "the texts"));
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1, ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string place = format("{}:{}", name, number);
    const policy::Node row = BELLJAR_TRY(policy::parse_json_document({.text = line, .file = place}));
    if (text_of(row, "text").empty() || text_of(row, "label").empty())
      return Error(Code::kInvalidArgument, format("cannot evaluate {}", belljar::quoted(place)))
          .reason("it is no object with a \"text\" and a \"label\"");
    add_row(row, options, rates);
  }
  return {};
}

std::string shown(const Share& share) {
  if (share.all == 0) return format("{:>32}", "-");
  const auto [low, high] = share.interval();
  return format("{:>5} of {:>5} {:>5.1f} % ({:>4.1f}-{:>5.1f})", share.hits, share.all, 100 * share.rate(), 100 * low, 100 * high);
}

std::string as_table(const Rates& rates) {
  std::size_t width = 22;
  for (const auto& [key, row] : rates) width = std::max(width, std::get<2>(key).size());
  std::string table, group;
  for (const auto& [key, row] : rates) {
    const auto& [benign, part, family] = key;
    const std::string title = format("{}{}{}", benign ? "no attack" : "attacks", part.empty() ? "" : ", ", escaped(part));
    if (std::exchange(group, title) != title)
      table += format("{}{:<{}}   {:>32}{}\n", table.empty() ? "" : "\n", title, width + 2, "flagged",
                      benign ? "" : "                clean twins flagged   net");
    table += format("  {:<{}}   {}", escaped(family), width, shown(row.flagged));
    if (!benign && row.twins.all > 0) {
      const auto [low, high] = row.interval();
      table += format("   {}   {:.1f} % ({:.1f}-{:.1f})", shown(row.twins), 100 * row.net(), 100 * low, 100 * high);
    }
    table += "\n";
  }
  return table;
}

std::string as_objects(const Rates& rates) {
  std::string lines;
  for (const auto& [key, row] : rates) {
    const auto& [benign, part, family] = key;
    const auto [low, high] = row.flagged.interval();
    lines += format(R"({{"label":"{}","part":{},"family":{},"texts":{},"flagged":{},"low":{:.4f},"high":{:.4f})",
                    benign ? "benign" : "attack", policy::json_text(part), policy::json_text(family), row.flagged.all,
                    row.flagged.hits, low, high);
    if (row.twins.all > 0) {
      const auto [net_low, net_high] = row.interval();
      lines += format(R"(,"twins":{},"twins_flagged":{},"net":{:.4f},"net_low":{:.4f},"net_high":{:.4f})", row.twins.all,
                      row.twins.hits, row.net(), net_low, net_high);
    }
    lines += "}\n";
  }
  return lines;
}

}  // namespace

Result<std::string> evaluate(const std::string& folder, detect::Options options, bool json) {
  std::vector<std::string> files;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed))
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path().string());
  if (failed || files.empty())
    return Error(Code::kNotFound, format("cannot evaluate {}", belljar::quoted(folder)))
        .reason(failed ? failed.message() : "no file of it ends with .jsonl")
        .next("name a directory with *.jsonl: an object a line, with \"text\", \"label\", \"family\", \"twin\"");
  std::ranges::sort(files);
  Rates rates;
  for (const std::string& file : files) {
    if (const Result<void> added = add_file(file, options, rates); !added) return added.error();
  }
  return json ? as_objects(rates) : as_table(rates);
}

}  // namespace belljar::cli
