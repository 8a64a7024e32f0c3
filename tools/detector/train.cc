// Makes src/detect/weights.inc, the weights of the detector's model (src/detect/model.h): logistic regression by AdaGrad with a
// penalty on the size of the weights; and src/detect/role_net.inc (train_net.h). Called by tools/train-detector.
//
//   train CORPUS FOLDER [FOLDS] < LIST      LIST: files of ordinary text, one a line; `?` before a name: only to be measured
//
// CORPUS is tests/detect/corpus; only its tuned halves are learned from. An attack is an example whose best run of one to three
// sentences has to say "attack" (the others may be anything); of a text that is no attack every run has to say "none". With FOLDS
// the tuned attacks are left out in turn. What is printed says how many texts of a kind are flagged at some thresholds: to choose
// the settings.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "detect/model.h"
#include "detect/normal.h"
#include "detect/speech.h"
#include "train_net.h"

using namespace belljar::detect;
namespace fs = std::filesystem;

namespace {

struct Count {
  std::uint32_t feature;
  float times;
};
using Sentence = std::vector<Count>;

enum class Kind { kAttack, kTwin, kWritten, kTalk, kOrdinary };
struct Text {
  Kind kind;
  std::vector<SentenceFeatures> raw;
  std::vector<Sentence> sentences;
  std::vector<RoleBits> bits;  // of each sentence
  int fold = 0;
  bool measured = false;  // not trained on
};

std::string unescaped(std::string_view cell) {
  constexpr std::string_view kLetters = "nrea\\", kMeant = "\n\r\x1b\a\\";
  std::string text;
  for (std::size_t i = 0; i < cell.size(); ++i) {
    const std::size_t letter = cell[i] == '\\' && i + 1 < cell.size() ? kLetters.find(cell[i + 1]) : std::string_view::npos;
    text += letter == std::string_view::npos ? cell[i] : kMeant[letter];
    if (letter != std::string_view::npos) ++i;
  }
  return text;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t tab = std::min(line.find('\t', at), line.size());
    cells.push_back(unescaped(std::string_view(line).substr(at, tab - at)));
    at = tab + 1;
  }
  return cells;
}

class Corpus {
 public:
  explicit Corpus(const fs::path& folder) {
    attacks(folder / "attacks.tsv");
    first_ = texts.size();
    attacks(folder / "second/attacks.tsv");
    documents(folder / "second/documents.txt", Kind::kWritten);
    attacks(folder / "third/attacks.tsv", true);
    documents(folder / "third/documents.txt", Kind::kWritten, true);
    attacks(folder / "fourth/attacks.tsv", true);
    documents(folder / "fourth/documents.txt", Kind::kWritten, true);
    families(folder / "../../../build/corpus/seen.jsonl"), families(folder / "../../../build/corpus/languages.jsonl");
    for (const char* part : {"fifth", "sixth"}) {
      std::vector<fs::path> files;
      for (const auto& entry : fs::directory_iterator(folder / part)) files.push_back(entry.path());
      std::ranges::sort(files);
      for (const fs::path& file : files) labelled(file);
    }
    number_ = 0;  // as tests/detect/rates_test.cc counts
    for (const char* language : {"en", "es", "fr", "de", "ru", "zh"})
      documents(folder / "benign" / ("documents." + std::string(language) + ".txt"), Kind::kWritten);
    number_ = 0;
    documents(folder / "benign/security.txt", Kind::kTalk);
    std::ifstream talk(folder / "talk.txt");
    for (std::string line; std::getline(talk, line);) add(Kind::kTalk, line, number_++ % 2 == 0);
  }
  void add(Kind kind, std::string_view text, bool tuned = true, bool measured = false) {
    if (!tuned && !measured) return;
    Hidden hidden;
    Text made{.kind = kind, .raw = {}, .sentences = {}, .measured = !tuned};
    const Plain plain = normalise(text, hidden);
    const Speech speech(plain.text, &made.raw);
    made.raw.pop_back();  // what would come next
    for (const SentenceFeatures& sentence : made.raw) made.bits.push_back(sentence.bits);
    texts.push_back(std::move(made));
  }
  std::vector<Text> texts;
  std::size_t first_ = 0;  // of the second corpus, which no row was written for

 private:
  // Of tools/detector/make-corpus: what is held out within a family is measured.
  void families(const fs::path& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line); ++made_) {
      const auto row = nlohmann::json::parse(line);
      const bool tuned = row.at("part") == "seen";
      add(Kind::kAttack, row.at("text").get<std::string>(), tuned, true), texts.back().fold = made_;
      add(Kind::kTwin, row.at("twin").get<std::string>(), tuned, true), texts.back().fold = made_;
    }
  }
  int made_ = 0;
  // An object a line, as `belljar scan --evaluate` has it.
  void labelled(const fs::path& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line); ++made_) {
      const auto row = nlohmann::json::parse(line);
      const std::string text = row.at("text").get<std::string>(), twin = row.value("twin", "");
      const bool attack = row.at("label") == "attack", talk = path.stem() == "talk" || row.value("family", "") == "talk";
      add(attack ? Kind::kAttack : talk ? Kind::kTalk : Kind::kWritten, text), texts.back().fold = made_;
      if (attack && !twin.empty()) add(Kind::kTwin, twin), texts.back().fold = made_;
    }
  }
  // `measured`: what is held out is kept, too, to be measured by.
  void attacks(const fs::path& path, bool measured = false) {
    std::ifstream file(path);
    std::size_t number = 0;
    int fold = 0;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with('#')) continue;
      const std::vector<std::string> cells = cells_of(line);
      const bool tuned = cells.size() > 4 ? cells[4] == "dev" : number % 2 == 0;
      ++number;
      if (!tuned && !measured) continue;
      add(Kind::kAttack, cells[2], tuned, measured), texts.back().fold = fold;
      if (!cells[3].empty()) add(Kind::kTwin, cells[3], tuned, measured), texts.back().fold = fold;
      ++fold;
    }
  }
  void documents(const fs::path& path, Kind kind, bool measured = false) {
    std::ifstream file(path);
    std::string text, half, name;
    const auto end = [&] {
      const bool tuned = half == "dev" || (half != "held" && number_ % 2 == 0);
      if (!text.empty())
        add(kind == Kind::kWritten && (name.starts_with("security") || text.find("njection") != std::string::npos) ? Kind::kTalk
                                                                                                                   : kind,
            text, tuned, measured),
            ++number_;
      text.clear();
    };
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("=== ")) {
        text += line + "\n";
        continue;
      }
      end();
      half = line.substr(line.rfind(' ') + 1), name = line.substr(4);
    }
    end();
  }
  std::size_t number_ = 0;
};

// Features get numbers; words only when several texts have them.
class Numbers {
 public:
  explicit Numbers(const std::vector<Text>& texts) {
    std::map<std::string, std::pair<int, int>> seen;  // attacks, others
    for (const Text& text : texts) {
      if (text.kind == Kind::kOrdinary) continue;
      std::set<std::string> mine;
      for (const SentenceFeatures& sentence : text.raw)
        for (std::size_t i = 0; i < sentence.features.size(); ++i)
          if (is_word(sentence.features[i].kind)) mine.insert(name_of(sentence, i));
      if (text.measured) continue;
      for (const std::string& name : mine) (text.kind == Kind::kAttack ? seen[name].first : seen[name].second)++;
    }
    for (const auto& [name, counts] : seen) {
      const bool two = name.starts_with("two ");
      const bool few = counts.first < 3 && (two || counts.second < 6);
      if (!few) known_.insert(name);
    }
  }
  std::int64_t of(const SentenceFeatures& sentence, std::size_t i) {
    const Feature feature = sentence.features[i];
    const std::uint64_t key = (static_cast<std::uint64_t>(feature.kind) << 32U) | feature.id;
    if (const auto found = numbers_.find(key); found != numbers_.end()) return found->second;
    std::string name = name_of(sentence, i);
    const bool kept = !is_word(feature.kind) || known_.contains(name);
    const std::int64_t number = kept ? static_cast<std::int64_t>(names.size()) : -1;
    if (kept) names.push_back(std::move(name)), kinds.push_back(feature.kind);
    if (!sentence.names[i].empty() || !is_word(feature.kind)) numbers_[key] = number;
    return number;
  }
  std::vector<std::string> names;
  std::vector<FeatureKind> kinds;

 private:
  static bool is_word(FeatureKind kind) {
    return kind == FeatureKind::kWord || kind == FeatureKind::kTwoWords || kind == FeatureKind::kStem;
  }
  static std::string name_of(const SentenceFeatures& sentence, std::size_t i) {
    const Feature feature = sentence.features[i];
    const auto named = [](std::uint32_t bit) { return std::string(name_of_role(bit)); };
    switch (feature.kind) {
      case FeatureKind::kRole:
        return "role " + named(feature.id);
      case FeatureKind::kOrder:
        return "order " + named(feature.id);
      case FeatureKind::kNegated:
        return "not " + named(feature.id);
      case FeatureKind::kPair:
        return "pair " + named(feature.id / 64) + " " + named(feature.id % 64);
      case FeatureKind::kSign:
        return "sign " + sentence.names[i];
      case FeatureKind::kWord:
        return "word " + sentence.names[i];
      case FeatureKind::kTwoWords:
        return "two " + sentence.names[i];
      case FeatureKind::kStem:
        return "stem " + sentence.names[i];
      case FeatureKind::kMark:
        return "mark " + std::to_string(feature.id);
      default:
        return "sentence -";
    }
  }
  std::set<std::string> known_;
  std::unordered_map<std::uint64_t, std::int64_t> numbers_;
};

void number(Text& text, Numbers& numbers) {
  for (const SentenceFeatures& raw : text.raw) {
    std::unordered_map<std::uint32_t, float> own;
    for (std::size_t i = 0; i < raw.features.size(); ++i) {
      if (const std::int64_t found = numbers.of(raw, i); found >= 0) own[static_cast<std::uint32_t>(found)] += 1;
    }
    Sentence sentence;
    for (const auto& [feature, times] : own) sentence.push_back({feature, times});
    text.sentences.push_back(std::move(sentence));
  }
  text.raw.clear(), text.raw.shrink_to_fit();
}

struct Settings {
  float rate = 0.1F, decay = 2e-4F;
  int epochs = 20;
  float attack = 8, twin = 4, written = 16, talk = 20, ordinary = 4;
};

class Trainer {
 public:
  Trainer(const std::vector<Text>& texts, const Numbers& numbers, Settings settings) : texts_(texts), settings_(settings) {
    weights_.resize(numbers.names.size()), squares_.resize(numbers.names.size(), 1e-2F);
    for (const FeatureKind kind : numbers.kinds)  // what is seldom seen is believed less
      scale_.push_back(kind == FeatureKind::kTwoWords                             ? 0.5F
                       : kind == FeatureKind::kWord || kind == FeatureKind::kStem ? 0.7F
                       : kind == FeatureKind::kPair                               ? 0.6F
                                                                                  : 1);
  }
  void run(int without_fold, int folds) {
    std::vector<const Text*> order;
    for (const Text& text : texts_) {
      if (text.measured) continue;
      const bool out = folds > 0 && (text.kind == Kind::kAttack || text.kind == Kind::kTwin) && text.fold % folds == without_fold;
      if (!out) order.push_back(&text);
    }
    std::mt19937 random(7);  // NOLINT: the same weights each time
    for (int epoch = 0; epoch < settings_.epochs; ++epoch) {
      std::shuffle(order.begin(), order.end(), random);
      for (const Text* text : order) {
        // A file that is nowhere near an attack teaches nothing; it is looked at again now and then.
        int& rest = resting_[text];
        if (rest > 0 && --rest > 0) continue;
        if (!learn(*text) && text->kind == Kind::kOrdinary) rest = 4;
      }
      if (epoch >= settings_.epochs / 2) add_to_mean();
    }
    take_mean();
  }
  // The best run of one to three sentences: its log-odds, its last sentence and length.
  struct Best {
    float odds = -1e9F;
    std::size_t last = 0, length = 1;
  };
  Best best(const Text& text) const {
    Best result;
    each_run(text, [&](float odds, std::size_t last, std::size_t length) {
      if (odds > result.odds) result = {odds, last, length};
    });
    return result;
  }
  // The runs that say most, at most `most` of them.
  std::vector<Best> likeliest(const Text& text, std::size_t most) const {
    std::vector<Best> runs;
    each_run(text, [&](float odds, std::size_t last, std::size_t length) {
      if (odds > -9) runs.push_back({odds, last, length});
    });
    std::ranges::sort(runs, [](const Best& left, const Best& right) { return left.odds > right.odds; });
    if (runs.size() > most) runs.resize(most);
    return runs;
  }
  float bias = -4;
  const std::vector<float>& weights() const { return weights_; }
  float scaled(std::size_t i) const { return weights_[i] * scale_[i]; }

 private:
  float sum_of(const std::vector<Count>& counts) const {
    float sum = 0;
    for (const Count& count : counts) sum += weights_[count.feature] * scale_[count.feature] * count.times;
    return sum;
  }
  template <typename Visit>
  void each_run(const Text& text, Visit visit) const {
    std::vector<float> scores;
    for (const Sentence& sentence : text.sentences) scores.push_back(sum_of(sentence));
    for (std::size_t last = 0; last < scores.size(); ++last) {
      float sum = bias;
      for (std::size_t length = 1; length <= kMostTogether && length <= last + 1; ++length)
        visit(sum += scores[last + 1 - length], last, length);
    }
  }
  float weight_of(Kind kind) const {
    switch (kind) {
      case Kind::kAttack:
        return settings_.attack;
      case Kind::kTwin:
        return settings_.twin;
      case Kind::kWritten:
        return settings_.written;
      case Kind::kTalk:
        return settings_.talk;
      default:
        return settings_.ordinary;
    }
  }
  // False: nothing was to be learned.
  bool learn(const Text& text) {
    if (text.sentences.empty()) return false;
    if (text.kind == Kind::kAttack) {
      const Best found = best(text);
      step(text, found.last, found.length, found.odds, 1);
      return true;
    }
    std::vector<Best> runs = likeliest(text, 8);
    std::erase_if(runs, [](const Best& run) { return run.odds <= -6; });
    for (const Best& run : runs) step(text, run.last, run.length, run.odds, 0);
    return !runs.empty();
  }
  void step(const Text& text, std::size_t last, std::size_t length, float odds, float wanted) {
    const float error = (1 / (1 + std::exp(-odds)) - wanted) * weight_of(text.kind);
    for (std::size_t i = last + 1 - length; i <= last; ++i) {
      for (const Count& count : text.sentences[i]) move(count.feature, error * count.times);
    }
    bias_square_ += error * error;
    bias -= settings_.rate * error / std::sqrt(bias_square_);
  }
  // The mean of the weights over the later epochs: they stay near the same place, and where in it they end is chance.
  void add_to_mean() {
    mean_.resize(weights_.size());
    for (std::size_t i = 0; i < weights_.size(); ++i) mean_[i] += weights_[i];
    mean_bias_ += bias, ++means_;
  }
  void take_mean() {
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] = mean_[i] / means_;
    bias = mean_bias_ / means_;
  }
  void move(std::uint32_t feature, float error) {
    float& weight = weights_[feature];
    const float gradient = error * scale_[feature] + settings_.decay * 10 * weight;
    squares_[feature] += gradient * gradient;
    weight -= settings_.rate * gradient / std::sqrt(squares_[feature]);
  }
  const std::vector<Text>& texts_;
  Settings settings_;
  std::vector<float> weights_, squares_, scale_;
  float bias_square_ = 1;
  std::unordered_map<const Text*, int> resting_;  // for how many epochs
  std::vector<float> mean_;
  float mean_bias_ = 0, means_ = 0;
};

// How a word begins may be cut within a letter: such a row is no text.
bool is_whole(std::string_view name) {
  std::size_t letter = name.size();
  while (letter > 0 && (static_cast<unsigned char>(name[letter - 1]) & 0xC0U) == 0x80) --letter;
  if (letter == 0) return false;
  const auto first = static_cast<unsigned char>(name[letter - 1]);
  const std::size_t size = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  return name.size() - letter + 1 == size;
}

void write(const fs::path& path, const Trainer& trainer, const Numbers& numbers) {
  std::ofstream out(path);
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < numbers.names.size(); ++i) {
    char number[32];
    std::snprintf(number, sizeof number, " %.2f", static_cast<double>(trainer.scaled(i)));
    const bool written = numbers.names[i].find('"') == std::string::npos && is_whole(numbers.names[i]);
    if (std::abs(trainer.scaled(i)) >= 0.03F && written) rows.push_back(numbers.names[i] + number);
  }
  std::ranges::sort(rows);
  constexpr float kCaution = 1.25F;  // a wrong alarm costs more than a miss: the threshold stands above even odds
  out << "R\"(bias - " << trainer.bias - kCaution << "\n";
  for (const std::string& row : rows) out << row << "\n";
  out << ")\"\n";
}

// What the net looks at: of an attack the runs that the weights find most likely, of other texts all, each kind once.
NetExample example_of(const Trainer& trainer, const Text& text) {
  NetExample example{.runs = {}, .attack = text.kind == Kind::kAttack, .weight = 1};
  if (text.kind == Kind::kTwin) example.weight = 2;
  if (text.kind == Kind::kWritten || text.kind == Kind::kTalk) example.weight = 3;
  const auto add = [&](std::size_t last, std::size_t length) {
    RoleBits bits;
    for (std::size_t i = last + 1 - length; i <= last; ++i) bits.add(text.bits[i]);
    const bool enough = RoleNet::may_say(bits);
    if (enough && std::ranges::find(example.runs, bits) == example.runs.end()) example.runs.push_back(bits);
  };
  if (example.attack) {
    for (const Trainer::Best& run : trainer.likeliest(text, 30)) add(run.last, run.length);
    return example;
  }
  constexpr std::size_t kMost = 600;
  for (std::size_t last = 0; last < text.bits.size() && example.runs.size() < kMost; ++last) {
    for (std::size_t length = 1; length <= kMostTogether && length <= last + 1; ++length) add(last, length);
  }
  return example;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int folds = argc > 3 ? std::atoi(argv[3]) : 0;
  Corpus corpus(argv[1]);
  const Settings settings;
  Numbers numbers(corpus.texts);
  for (Text& text : corpus.texts) number(text, numbers);
  for (std::string name; std::getline(std::cin, name);) {
    const bool measured = name.starts_with('?');
    std::ifstream file(name.substr(measured ? 1 : 0), std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    text.resize(std::min<std::size_t>(text.size(), 40U << 10U));
    if (text.find("gnore previous instr") != std::string::npos) continue;
    corpus.add(Kind::kOrdinary, text, !measured, measured);
    number(corpus.texts.back(), numbers);
  }
  std::fprintf(stderr, "%zu texts, %zu features\n", corpus.texts.size(), numbers.names.size());
  const auto share = [](const std::vector<float>& of, float at) {
    return 100.0 * static_cast<double>(std::ranges::count_if(of, [&](float odds) { return odds >= at; })) /
           static_cast<double>(std::max<std::size_t>(of.size(), 1));
  };
  std::map<std::string, std::vector<float>> odds;
  for (int fold = 0; fold < folds; ++fold) {
    Trainer trainer(corpus.texts, numbers, settings);
    trainer.run(fold, folds);
    for (const Text& text : corpus.texts) {
      const float said = trainer.best(text).odds;
      const bool second = &text >= corpus.texts.data() + corpus.first_;
      if (text.measured) continue;
      if (second && text.kind == Kind::kAttack && text.fold % folds == fold) odds["left-out attacks"].push_back(said);
      if (text.kind == Kind::kTwin && text.fold % folds == fold) odds["their twins"].push_back(said);
    }
  }
  Trainer trainer(corpus.texts, numbers, settings);
  trainer.run(0, 0);
  for (const Text& text : corpus.texts) {
    constexpr const char* kNames[] = {"attacks", "twins", "ordinary texts", "talk", "files"};
    odds[std::string(text.measured ? "held out: " : "trained on: ") + kNames[static_cast<int>(text.kind)]].push_back(
        trainer.best(text).odds);
  }
  std::vector<NetExample> examples;
  for (const Text& text : corpus.texts) {
    if (!text.measured) examples.push_back(example_of(trainer, text));
  }
  const NetTrainer net(examples);
  for (const Text& text : corpus.texts) {
    constexpr const char* kNames[] = {"attacks", "twins", "ordinary texts", "talk", "files"};
    float most = -1e9F;
    for (const RoleBits& run : example_of(trainer, text).runs) most = std::max(most, net.odds(run));
    odds[std::string(text.measured ? "net, held out: " : "net: ") + kNames[static_cast<int>(text.kind)]].push_back(most);
  }
  for (const auto& [name, said] : odds) {
    std::printf("%-28s", name.c_str());
    for (float at = -1.5; at <= 2.5F; at += 0.5F) std::printf(" %6.2f", share(said, at));
    std::printf("  %% of %zu at log-odds -1.5, -1 ... 2.5\n", said.size());
  }
  const fs::path folder = argv[2];
  write(folder / "weights.inc", trainer, numbers);
  constexpr float kNetCaution = 0.75F;
  net.write(folder / "role_net.inc", kNetCaution);
}
