#include "cli/guard/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/hit_rate.h"
#include "belljar/error.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "policy/document.h"
#include "policy/json.h"

namespace belljar::cli {
namespace {

namespace fs = std::filesystem;

struct TwoShares {
  HitRate flagged, twins;
  void add(const TwoShares& other) { flagged.add(other.flagged), twins.add(other.twins); }
  double net() const { return flagged.rate() - twins.rate(); }
  // Newcombe 1998, method 10: of the difference of two rates.
  std::pair<double, double> interval() const {
    const auto [low, high] = flagged.interval();
    const auto [twin_low, twin_high] = twins.interval();
    return {net() - std::hypot(flagged.rate() - low, twin_high - twins.rate()),
            net() + std::hypot(high - flagged.rate(), twins.rate() - twin_low)};
  }
};

struct Rates {
  // Attacks first, then by part and family.
  using Key = std::tuple<bool, std::string, std::string>;
  std::map<Key, TwoShares> rows;
  std::map<std::string, TwoShares> behind_talk;  // by part: of attacks with sentences about attacks in front
  int passed_over = 0;                           // files
};
constexpr std::string_view kAll = "all", kFiles = "files", kBehindTalk = "with sentences about attacks in front";

// What anybody can write in front of an attack: it must excuse nothing.
constexpr std::string_view kTalk[] = {
    "Prompt injection is when a text that a model should only read is taken for an order.",
    "Attackers hide such instructions in pages, mails and code, and a scanner should find them.",
    "This page documents a vulnerability that was found during a security review.",
    "The payload below was reported by a researcher and is shown for education only.",
    "Our filter is tested with examples of known attacks, one of which follows.",
    "An assistant that follows what it reads can be made to leak secrets.",
};

std::string text_of(const policy::Node& row, std::string_view key) {
  const auto found = std::ranges::find(row.members, key, &policy::Member::key);
  return found != row.members.end() && found->value.kind == policy::Node::Kind::kText ? found->value.text : "";
}

detect::Options options_for(const std::string& file, detect::Options options) {
  if (detect::is_for_agents(file)) options.reader = detect::Reader::kAgent;
  return options;
}

// The sentences at `number` and behind it, as a paragraph of their own.
std::string two_of(const std::vector<std::string>& talk, std::size_t number) {
  return format("{} {}\n\n", talk[2 * number % talk.size()], talk[(2 * number + 1) % talk.size()]);
}

struct Measured {
  detect::Options options;
  std::vector<std::string> talk;  // two sentences and more
  Rates rates;
};

void add_row(const policy::Node& row, Measured& measured) {
  const detect::Options options = options_for(text_of(row, "file"), measured.options);
  const std::string text = text_of(row, "text"), twin = text_of(row, "twin"), part = text_of(row, "part");
  const bool attack = text_of(row, "label") == "attack";
  const auto both = [&](const std::string& before) {
    TwoShares one;
    one.flagged.add(detect::scan(before + text, options).suspicious());
    if (attack && !twin.empty()) one.twins.add(detect::scan(before + twin, options).suspicious());
    return one;
  };
  std::string family = text_of(row, "family");
  if (family.empty()) family = text_of(row, "kind");
  const TwoShares one = both("");
  for (const std::string_view name : {std::string_view(family), kAll}) {
    if (!name.empty()) measured.rates.rows[{!attack, part, std::string(name)}].add(one);
  }
  if (!attack) return;
  TwoShares& behind = measured.rates.behind_talk[part];
  behind.add(both(two_of(measured.talk, static_cast<std::size_t>(behind.flagged.all))));
}

Result<void> add_labelled(const std::string& name, Measured& measured) {
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
    add_row(row, measured);
  }
  return {};
}

bool is_labelled(const fs::path& path, const fs::path& folder) {
  return path.extension() == ".jsonl" && path.parent_path() == folder;
}

void add_ordinary(const fs::directory_entry& entry, const fs::path& folder, Measured& measured) {
  constexpr std::size_t kMost = 256U << 10;
  std::error_code failed;
  if (entry.file_size(failed) > kMost || failed) return ++measured.rates.passed_over, void();
  const auto text = read_text_file(entry.path().string(), "the file");
  if (!text || text->empty() || text->find('\0') != std::string::npos) return ++measured.rates.passed_over, void();
  const fs::path inside = entry.path().lexically_relative(folder);
  const std::string first = inside.has_parent_path() ? inside.begin()->string() : ".";
  TwoShares one;
  one.flagged.add(detect::scan(*text, options_for(inside.string(), measured.options)).suspicious());
  for (const std::string& name : {first, std::string(kFiles)}) measured.rates.rows[{true, std::string(kFiles), name}].add(one);
}

// Those below `folder` by name, so that a table is the same each time.
Result<std::vector<fs::directory_entry>> files_below(const fs::path& folder) {
  std::vector<fs::directory_entry> files;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code unknown;
    if (at->path().filename() == ".git") at.disable_recursion_pending();
    else if (at->is_regular_file(unknown) && !at->is_symlink(unknown)) files.push_back(*at);
  }
  if (failed || files.empty())
    return Error(Code::kNotFound, format("cannot evaluate {}", belljar::quoted(folder.string())))
        .reason(failed ? failed.message() : "no file is below it")
        .next("name a directory with *.jsonl (an object a line, with \"text\", \"label\", \"family\", \"twin\") or with files");
  std::ranges::sort(files, {}, [](const fs::directory_entry& entry) { return entry.path().string(); });
  return files;
}

Result<std::vector<std::string>> sentences_of(const std::string& name) {
  if (name.empty()) return std::vector<std::string>(std::begin(kTalk), std::end(kTalk));
  std::vector<std::string> sentences;
  const std::string text = BELLJAR_TRY(read_text_file(name, "the talk"));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) sentences.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (sentences.size() < 2)
    return Error(Code::kInvalidArgument, format("cannot take talk from {}", belljar::quoted(name)))
        .reason("it has fewer than two lines")
        .next("write a sentence a line");
  return sentences;
}

std::string shown(const HitRate& share) {
  if (share.all == 0) return format("{:>32}", "-");
  const auto [low, high] = share.interval();
  return format("{:>5} of {:>5} {:>5.1f} % ({:>4.1f}-{:>5.1f})", share.hits, share.all, 100 * share.rate(), 100 * low, 100 * high);
}

// What is net of the twins, or nothing.
std::string shown_net(const TwoShares& row) {
  if (row.twins.all == 0) return "";
  const auto [low, high] = row.interval();
  return format("   {}   {:.1f} % ({:.1f}-{:.1f})", shown(row.twins), 100 * row.net(), 100 * low, 100 * high);
}

std::string as_table(const Rates& rates) {
  std::size_t width = kBehindTalk.size();
  for (const auto& [key, row] : rates.rows) width = std::max(width, std::get<2>(key).size());
  std::string table, group, behind;
  const auto line = [&](std::string_view name, const TwoShares& row, bool benign) {
    return format("  {:<{}}   {}{}\n", escaped(name), width, shown(row.flagged), benign ? "" : shown_net(row));
  };
  for (const auto& [key, row] : rates.rows) {
    const auto& [benign, part, family] = key;
    const std::string title = format("{}{}{}", benign ? "no attack" : "attacks", part.empty() ? "" : ", ", escaped(part));
    if (std::exchange(group, title) != title) {
      table += std::exchange(behind, "");
      table += format("{}{:<{}}   {:>32}{}\n", table.empty() ? "" : "\n", title, width + 2, "flagged",
                      benign ? "" : "                clean twins flagged   net");
      if (!benign) behind = line(kBehindTalk, rates.behind_talk.at(part), false);
    }
    table += line(family, row, benign);
  }
  table += behind;
  if (rates.passed_over > 0) table += format("\n{} files passed over: larger than 256 KiB, or no text\n", rates.passed_over);
  return table;
}

std::string as_object(std::string_view label, std::string_view part, std::string_view family, const TwoShares& row) {
  const auto [low, high] = row.flagged.interval();
  std::string object = format(R"({{"label":"{}","part":{},"family":{},"texts":{},"flagged":{},"low":{:.4f},"high":{:.4f})", label,
                              policy::json_text(part), policy::json_text(family), row.flagged.all, row.flagged.hits, low, high);
  if (row.twins.all > 0) {
    const auto [net_low, net_high] = row.interval();
    object += format(R"(,"twins":{},"twins_flagged":{},"net":{:.4f},"net_low":{:.4f},"net_high":{:.4f})", row.twins.all,
                     row.twins.hits, row.net(), net_low, net_high);
  }
  return object + "}\n";
}

std::string as_objects(const Rates& rates) {
  std::string lines;
  for (const auto& [key, row] : rates.rows)
    lines += as_object(std::get<0>(key) ? "benign" : "attack", std::get<1>(key), std::get<2>(key), row);
  for (const auto& [part, row] : rates.behind_talk) lines += as_object("attack", part, kBehindTalk, row);
  return lines;
}

}  // namespace

Result<std::string> evaluate(const std::string& folder, const EvaluateOptions& options) {
  Measured measured{.options = options.detect, .talk = BELLJAR_TRY(sentences_of(options.talk)), .rates = {}};
  const fs::path root = fs::path(folder).lexically_normal() / "";
  for (const fs::directory_entry& entry : BELLJAR_TRY(files_below(root))) {
    if (!is_labelled(entry.path(), root.parent_path())) add_ordinary(entry, root, measured);
    else if (const Result<void> added = add_labelled(entry.path().string(), measured); !added) return added.error();
  }
  return options.json ? as_objects(measured.rates) : as_table(measured.rates);
}

}  // namespace belljar::cli
