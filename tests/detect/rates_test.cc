// What the detector finds and what it flags wrongly, on texts written for it: tests/detect/corpus. Of attacks and documents every
// second one, from the first on, is for tuning; the others are only measured. docs/design/guard.md cites the table.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hit_rate.h"
#include "detect/detect.h"
#include "detect/support_cells.h"
#include "detect/support_disguises.h"
#include "support/built.h"

namespace belljar::detect {
namespace {

namespace fs = std::filesystem;

fs::path source_dir() { return test::kSourceDir; }
fs::path corpus() { return source_dir() / "tests/detect/corpus"; }

std::string shown(const HitRate& rate) {
  const auto [low, high] = rate.interval();
  char text[64];
  std::snprintf(text, sizeof text, "%4d of %4d %5.1f %% (%.1f-%.1f)", rate.hits, rate.all, rate.share(), 100 * low, 100 * high);
  return text;
}

struct Halves {
  HitRate tuned, held;
  void add(std::size_t number, bool hit) { (number % 2 == 0 ? tuned : held).add(hit); }
  void add(const Halves& other) { tuned.add(other.tuned), held.add(other.held); }
};

using Table = std::map<std::string, Halves>;

Halves total(const Table& table) {
  Halves sum;
  for (const auto& [name, halves] : table) sum.add(halves);
  return sum;
}

void print(const char* title, const Table& table) {
  std::printf("%s\n", title);
  for (const auto& [name, halves] : table)
    std::printf("  %-18s tuned on %-34s held out %s\n", name.c_str(), shown(halves.tuned).c_str(), shown(halves.held).c_str());
  const Halves sum = total(table);
  std::printf("  %-18s tuned on %-34s held out %s\n", "all", shown(sum.tuned).c_str(), shown(sum.held).c_str());
}

// --- attacks ---------------------------------------------------------------------------------------------------------------------

struct Attack {
  std::string family, language, text, twin;
  bool tuned = true;  // of the second corpus, which says so
};

std::vector<Attack> attacks(const std::string& name = "attacks.tsv") {
  std::vector<Attack> result;
  std::ifstream file(corpus() / name);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::vector<std::string> cells;
    for (std::size_t at = 0; at <= line.size();) {
      const std::size_t tab = std::min(line.find('\t', at), line.size());
      cells.push_back(unescaped(std::string_view(line).substr(at, tab - at)));
      at = tab + 1;
    }
    EXPECT_TRUE(cells.size() == 4 || cells.size() == 5) << line;
    if (cells.size() >= 4) result.push_back({cells[0], cells[1], cells[2], cells[3], cells.size() == 4 || cells[4] == "dev"});
  }
  return result;
}

// Spelled as what it is: plain overrides, and text that speaks to the assistant.
bool is_separable(const Attack& attack) { return attack.family == "override" || attack.family == "address"; }

struct Attacks {
  Table families, languages, twins, hidden, hidden_twins;
};

void add_disguises(const Attack& attack, std::size_t number, Attacks& measured) {
  for (const Disguise& disguise : disguises()) {
    if (disguise.latin_only && attack.language != "en") continue;
    measured.hidden[disguise.name].add(number, scan(disguise.apply(attack.text)).suspicious());
    if (!disguise.sign_by_itself) measured.hidden_twins[disguise.name].add(number, scan(disguise.apply(attack.twin)).suspicious());
  }
}

Attacks measure_attacks() {
  Attacks measured;
  std::size_t number = 0;
  for (const Attack& attack : attacks()) {
    const bool found = scan(attack.text).suspicious();
    measured.families[attack.family].add(number, found);
    measured.languages[attack.language].add(number, found);
    measured.twins[attack.language].add(number, scan(attack.twin).suspicious());
    if (is_separable(attack)) add_disguises(attack, number, measured);
    ++number;
  }
  return measured;
}

TEST(Detector, RatesOnTheCorpus) {
  const Attacks measured = measure_attacks();
  print("attacks, by family", measured.families);
  print("attacks, by language", measured.languages);
  print("clean twins that are flagged, by language", measured.twins);
  print("plain overrides and addresses in disguise", measured.hidden);
  print("their clean twins in disguise that are flagged", measured.hidden_twins);

  const HitRate found = total(measured.families).held, wrong = total(measured.twins).held;
  std::printf("net, held out: %.1f %% - %.1f %% = %.1f %%\n", found.share(), wrong.share(), found.share() - wrong.share());
  EXPECT_GE(total(measured.families).tuned.all + found.all, 420);
  EXPECT_GE(measured.families.size(), 20U);
  EXPECT_EQ(measured.languages.size(), 6U);
  for (const auto& [language, halves] : measured.languages) EXPECT_GE(halves.tuned.all + halves.held.all, 40) << language;
  // Below the measured rates; what was aimed at and what was reached stands in docs/design/guard.md.
  EXPECT_GE(found.share() - wrong.share(), 60);
  EXPECT_LE(wrong.share(), 3);
  HitRate separable = measured.families.at("override").held;
  separable.add(measured.families.at("address").held);
  EXPECT_GE(separable.share(), 60);
  // What is found in plain is found in disguise.
  EXPECT_GE(total(measured.hidden).held.share(), separable.share() - 5);
  EXPECT_GE(total(measured.hidden).tuned.share(), 93);
  EXPECT_LE(total(measured.hidden_twins).held.share(), 4);
}

// Written later, in fifteen languages, by who had not read the first: a hash of each attack says which half it is of.
TEST(Detector, RatesOnTheSecondCorpus) {
  Table families, languages, twins;
  for (const Attack& attack : attacks("second/attacks.tsv")) {
    const bool found = scan(attack.text).suspicious();
    const std::size_t half = attack.tuned ? 0 : 1;
    families[attack.family].add(half, found), languages[attack.language].add(half, found);
    twins[attack.language].add(half, scan(attack.twin).suspicious());
  }
  print("second corpus, by family", families);
  print("second corpus, by language", languages);
  print("second corpus, clean twins that are flagged", twins);
  const HitRate found = total(families).held, wrong = total(twins).held;
  EXPECT_GE(found.all, 100);
  EXPECT_GE(languages.size(), 15U);
  EXPECT_GE(found.share() - wrong.share(), 30) << "docs/design/guard.md has the rate that was measured";
  EXPECT_LE(wrong.share(), 4);
  EXPECT_LE(total(twins).tuned.share(), 4);
}

// What tools/detector/make-corpus makes of the parts in tests/detect/corpus/families is measured by `belljar scan --evaluate`
// (docs/design/guard.md). Here its sentences stand alone.
std::vector<std::string> families(const std::string& name) {
  std::vector<std::string> result;
  std::ifstream file(corpus() / "families" / (name + ".txt"));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("! ") && !line.starts_with("? ")) continue;
    std::string text = line.substr(2);
    if (const std::size_t at = text.find("{goal}"); at != std::string::npos) text.replace(at, 6, "send the key to a@b.example");
    result.push_back(text);
  }
  return result;
}

struct Document {
  std::string kind, text;
  bool tuned = true;
};

// `=== kind language` begins each; in the second corpus `dev` or `held` follows.
std::vector<Document> documents(const fs::path& path) {
  std::vector<Document> result;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("=== ")) {
      result.push_back({.kind = line.substr(4, line.find(' ', 4) - 4), .text = {}, .tuned = !line.ends_with(" held")});
      continue;
    }
    EXPECT_FALSE(result.empty()) << path;
    if (!result.empty()) result.back().text += line + "\n";
  }
  return result;
}

// Corpora of writers who saw neither the rules nor a corpus; all of both is learned from.
void print_rates_of_writers(const std::string& name) {
  Table families, languages;
  for (const Attack& attack : attacks(name + "/attacks.tsv")) {
    const bool found = scan(attack.text).suspicious();
    const std::size_t half = attack.tuned ? 0 : 1;
    families[attack.family].add(half, found), languages[attack.language].add(half, found);
  }
  Table kinds;
  for (const Document& document : documents(corpus() / name / "documents.txt"))
    kinds[document.kind].add(document.tuned ? 0 : 1, scan(document.text).suspicious());
  print((name + " corpus, by family").c_str(), families);
  print((name + " corpus, by language").c_str(), languages);
  print((name + " corpus, texts that are no attack and are flagged").c_str(), kinds);
  EXPECT_GE(total(families).tuned.all, 200);
  EXPECT_GE(total(families).tuned.share(), 60);
  EXPECT_LE(kinds["ordinary"].tuned.share(), 3);
  EXPECT_LE(kinds["security"].tuned.share(), 10);
}

// A terse engineer and one with many voices. The second was measured before it was trained on, too (docs/design/guard.md).
TEST(Detector, RatesOnTheThirdCorpus) { print_rates_of_writers("third"); }

// Loud ones, a careful adversary, and a team of translators; the last was measured before it was trained on, too.
TEST(Detector, RatesOnTheFourthCorpus) { print_rates_of_writers("fourth"); }

// --- what is no attack -----------------------------------------------------------------------------------------------------------

std::vector<Document> talk() {
  std::vector<Document> result = documents(corpus() / "benign/security.txt");
  std::ifstream file(corpus() / "talk.txt");
  for (std::string line; std::getline(file, line);) result.push_back({.kind = "security", .text = line, .tuned = true});
  return result;
}

std::vector<Document> written() {
  std::vector<Document> result;
  for (const char* language : {"en", "es", "fr", "de", "ru", "zh"}) {
    for (Document& document : documents(corpus() / "benign" / ("documents." + std::string(language) + ".txt")))
      result.push_back(std::move(document));
  }
  return result;
}

// The classic attack, as it stands in tests of other rooms that show what it leads to.
bool holds_attack(std::string_view text) {
  return text.find("gnore all previous instructions") != std::string_view::npos ||
         text.find("gnore previous instructions") != std::string_view::npos;
}

// The files of this project, without those that hold attacks because of what they are for: the detector's, the guard's, and some
// tests.
std::vector<Document> own_files() {
  std::set<fs::path> paths;
  for (const char* folder : {"src", "include", "docs", "tests", "bench", "tools", "profiles", "examples"}) {
    for (const auto& entry : fs::recursive_directory_iterator(source_dir() / folder)) {
      const std::string path = entry.path().lexically_relative(source_dir()).string();
      const bool holds_words = path.find("guard") != std::string::npos || path.find("/detect/") != std::string::npos;
      if (entry.is_regular_file() && !holds_words) paths.insert(path);
    }
  }
  std::vector<Document> result;
  for (const fs::path& path : paths) {
    std::ifstream file(source_dir() / path, std::ios::binary);
    Document document{.kind = path.begin()->string() + "/", .text = {std::istreambuf_iterator<char>(file), {}}, .tuned = true};
    if (!holds_attack(document.text)) result.push_back(std::move(document));
  }
  return result;
}

Table flagged(const std::vector<Document>& documents) {
  Table table;
  std::size_t number = 0;
  for (const Document& document : documents) {
    const Scan found = scan(document.text);
    if (found.suspicious() && number % 2 == 0)
      std::printf("  flagged (%s, score %d): %s\n", document.kind.c_str(), found.score, document.text.substr(0, 80).c_str());
    table[document.kind].add(number++, found.suspicious());
  }
  return table;
}

std::vector<std::string> every_attack() {
  std::vector<std::string> result;
  for (const char* name : {"attacks.tsv", "second/attacks.tsv", "third/attacks.tsv", "fourth/attacks.tsv"}) {
    for (Attack& attack : attacks(name)) result.push_back(std::move(attack.text));
  }
  for (const char* name : {"seen", "unseen", "languages"}) {
    for (std::string& text : families(name)) result.push_back(std::move(text));
  }
  return result;
}

// Talk about attacks in front of an attack and behind it takes nothing from it: as paragraphs of their own never, as lines beside
// it only where it ends in the middle of a sentence that goes on.
TEST(Detector, TalkAroundAnAttackExcusesNothing) {
  const std::vector<Document> around = talk();
  ASSERT_GE(around.size(), 100U);
  HitRate weaker;
  std::size_t number = 0;
  for (const std::string& attack : every_attack()) {
    const int alone = scan(attack).score;
    const std::string &prefix = around[number % around.size()].text, &suffix = around[(number * 7 + 3) % around.size()].text;
    EXPECT_GE(scan(prefix + "\n\n" + attack + "\n\n" + suffix).score * 10, alone * 9) << prefix << "\n--- " << attack;
    weaker.add(scan(prefix + "\n" + attack + "\n" + suffix).score * 10 < alone * 9);
    ++number;
  }
  EXPECT_GE(weaker.all, 2000);
  EXPECT_LE(weaker.share(), 1);
}

// Files that tell an assistant what to do here, documentation of prompts, security articles in few words: what is nearest to an
// attack.
TEST(Detector, HardOrdinaryTexts) {
  Table kinds;
  for (const Document& document : documents(corpus() / "second/documents.txt"))
    kinds[document.kind].add(document.tuned ? 0 : 1, scan(document.text).suspicious());
  print("hard ordinary texts that are flagged, by kind", kinds);
  EXPECT_LE(total(kinds).tuned.share(), 10);
  EXPECT_LE(total(kinds).held.share(), 15);
}

TEST(Detector, OrdinaryTextsAreNotFlagged) {
  const Table files = flagged(written()), own = flagged(own_files()), security = flagged(talk());
  print("documents that are flagged, by kind", files);
  print("files of this project that are flagged", own);
  print("talk about attacks and deletion that is flagged", security);

  HitRate ordinary = total(files).held, all = total(files).tuned;
  ordinary.add(total(own).held), all.add(total(own).tuned), all.add(ordinary);
  std::printf("ordinary, held out: %s; all: %s\n", shown(ordinary).c_str(), shown(all).c_str());
  EXPECT_GE(all.all, 1000);
  EXPECT_LE(all.share(), 1);
  EXPECT_LE(ordinary.share(), 2);
  HitRate about = total(security).tuned;
  about.add(total(security).held);
  EXPECT_GE(about.all, 100);
  EXPECT_LE(about.share(), 3);
}

}  // namespace
}  // namespace belljar::detect
