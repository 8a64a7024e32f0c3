// Makes src/guard/likely_trees.inc, the trees of guard/likely.h: gradient boosting (Friedman 2001) of the logistic loss, with a
// penalty on what a leaf says. Called by tools/train-chain.
//
//   train-chain TRAITS [FOLDS HALF] > TREES      TRAITS: JSON lines of test_guard_unit (BELLJAR_CHAIN_TRAITS)
//
// A turn in which something was planted is an example whose likeliest act has to say so (the others may be anything); of clean
// turns and of calls beside something planted every act has to say no. With FOLDS the turns of HALF (`-`: all) are left out in
// turn, and what stderr says is of those: to choose settings. The same input makes the same trees.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "guard/likely.h"

namespace {

using belljar::guard::find_trait;
using belljar::guard::kTraitCount;
using belljar::guard::kTraitNames;
using belljar::guard::Traits;
using Json = nlohmann::json;

double setting(const char* name, double value) {
  const char* given = std::getenv(name);
  return given == nullptr ? value : std::atof(given);
}

struct Example {  // a planted turn, or a call that nobody planted
  std::string half, kind, name;
  std::uint32_t turn = 0;
  std::vector<std::size_t> acts;
  bool planted() const { return kind == "poisoned"; }
};

struct Data {
  std::vector<Example> examples;
  std::vector<Traits> acts;
};

std::uint32_t hash_of(const std::string& text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

Data read(const char* path, bool heard) {
  std::ifstream file(path);
  Data data;
  std::map<std::string, std::size_t> known;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line);
    if (json["heard"] != heard) continue;
    const std::string kind = json["kind"], half = json["half"], turn = json["turn"];
    const std::string call = std::to_string(json["call"].get<int>());
    const std::string whole = half.starts_with("short-") ? half.substr(6) : half;  // the cut turns go with their own
    const auto [at, made] = known.try_emplace(half + turn + kind + (kind == "poisoned" ? "" : call), data.examples.size());
    if (made) data.examples.push_back({half, kind, turn + " " + call, hash_of(whole + turn), {}});
    Traits traits{};
    for (const auto& [name, value] : json["traits"].items()) {
      if (const std::size_t number = find_trait(name); number < kTraitCount) traits[number] = value;
    }
    data.examples[at->second].acts.push_back(data.acts.size());
    data.acts.push_back(traits);
  }
  return data;
}

struct Node {
  std::size_t trait = 0;
  float threshold = 0;
  int less = -1, more = -1;  // -1: a leaf
  double value = 0;
};
using Tree = std::vector<Node>;

double value_of(const Tree& tree, const Traits& traits) {
  std::size_t at = 0;
  while (tree[at].less >= 0) {
    const Node& node = tree[at];
    at = static_cast<std::size_t>(traits[node.trait] <= node.threshold ? node.less : node.more);
  }
  return tree[at].value;
}

struct Pull {  // what an example pulls at, and how firmly
  std::size_t act = 0;
  double gradient = 0, curvature = 0;
};

// Each trait in at most 64 steps: where a tree may ask.
class Steps {
 public:
  explicit Steps(const std::vector<Traits>& acts) : of_(acts.size()) {
    for (std::size_t trait = 0; trait < kTraitCount; ++trait) {
      std::vector<float> values;
      for (const Traits& traits : acts) values.push_back(traits[trait]);
      std::ranges::sort(values);
      std::vector<float>& limits = limits_[trait];
      for (std::size_t step = 1; step < kMost; ++step) {
        const std::size_t at = values.size() * step / kMost;
        const auto above = std::ranges::upper_bound(values, values[at]);
        if (above == values.end()) break;
        const float limit = std::round((values[at] + *above) * 500) / 1000;
        if (limits.empty() || limits.back() < limit) limits.push_back(limit);
      }
      if (limits.empty() && values.front() < values.back()) {  // few have it
        const auto above = std::ranges::upper_bound(values, values.front());
        limits.push_back(std::round((values.front() + *above) * 500) / 1000);
      }
      for (std::size_t act = 0; act < acts.size(); ++act)
        of_[act][trait] = static_cast<std::uint8_t>(std::ranges::lower_bound(limits, acts[act][trait]) - limits.begin());
    }
  }
  static constexpr std::size_t kMost = 64;
  std::uint8_t of(std::size_t act, std::size_t trait) const { return of_[act][trait]; }
  const std::vector<float>& limits(std::size_t trait) const { return limits_[trait]; }

 private:
  std::vector<std::array<std::uint8_t, kTraitCount>> of_;
  std::array<std::vector<float>, kTraitCount> limits_;
};

class Grower {
 public:
  Grower(const std::vector<Traits>& acts, std::mt19937& random) : acts_(acts), steps_(acts), random_(random) {}
  Tree grow(const std::vector<Pull>& pulls) {
    tree_.assign(1, {});
    some_.clear();
    for (std::size_t trait = 0; trait < kTraitCount; ++trait) {
      if (random_() % 100 < 40) some_.push_back(trait);
    }
    split(0, pulls, 0);
    return tree_;
  }

 private:
  static constexpr double kPenalty = 3;
  struct Sum {
    std::size_t count = 0;
    double gradient = 0, curvature = 0;
  };
  void split(std::size_t at, const std::vector<Pull>& pulls, int depth) {
    double gradient = 0, curvature = 0;
    for (const Pull& pull : pulls) gradient += pull.gradient, curvature += pull.curvature;
    tree_[at].value = gradient / (curvature + kPenalty);
    static const int kDepth = static_cast<int>(setting("DEPTH", 5));
    static const auto kFewest = static_cast<std::size_t>(setting("FEWEST", 10));
    if (depth >= kDepth || pulls.size() < 2 * kFewest) return;
    double best = 1e-3;
    for (const std::size_t trait : some_) {
      const std::vector<float>& limits = steps_.limits(trait);
      if (limits.empty()) continue;
      std::array<Sum, Steps::kMost + 1> sums{};
      for (const Pull& pull : pulls) {
        Sum& sum = sums[steps_.of(pull.act, trait)];
        ++sum.count;
        sum.gradient += pull.gradient;
        sum.curvature += pull.curvature;
      }
      Sum left;
      for (std::size_t step = 0; step < limits.size(); ++step) {
        left.count += sums[step].count;
        left.gradient += sums[step].gradient;
        left.curvature += sums[step].curvature;
        if (left.count < kFewest || pulls.size() - left.count < kFewest) continue;
        const double right = gradient - left.gradient;
        const double gain = left.gradient * left.gradient / (left.curvature + kPenalty) +
                            right * right / (curvature - left.curvature + kPenalty) - gradient * gradient / (curvature + kPenalty);
        if (gain <= best) continue;
        best = gain;
        tree_[at].trait = trait;
        tree_[at].threshold = limits[step];
        tree_[at].less = 0;
      }
    }
    if (tree_[at].less < 0) return;
    std::vector<Pull> less, more;
    for (const Pull& pull : pulls) (acts_[pull.act][tree_[at].trait] <= tree_[at].threshold ? less : more).push_back(pull);
    const std::size_t child = tree_.size();
    tree_.resize(child + 2);
    tree_[at].less = static_cast<int>(child);
    tree_[at].more = static_cast<int>(child + 1);
    split(child, less, depth + 1);
    split(child + 1, more, depth + 1);
  }
  const std::vector<Traits>& acts_;
  Steps steps_;
  std::mt19937& random_;
  Tree tree_;
  std::vector<std::size_t> some_;
};

struct Model {
  double start = -1;
  std::vector<Tree> trees;
  std::vector<double> odds;  // of all acts
  double best(const Example& example) const {
    double most = -1e9;
    for (const std::size_t act : example.acts) most = std::max(most, odds[act]);
    return most;
  }
};

Model train(const Data& data, const std::vector<const Example*>& examples) {
  const auto kTrees = static_cast<int>(setting("TREES", 400));
  const double kRate = setting("RATE", 0.05), kClean = setting("CLEAN", 1), kHonest = setting("HONEST", 0.5);
  Model model;
  model.odds.assign(data.acts.size(), model.start);
  std::mt19937 random(1);
  Grower grower(data.acts, random);
  std::vector<Pull> pulls;
  for (int round = 0; round < kTrees; ++round) {
    pulls.clear();
    for (const Example* example : examples) {
      if (random() % 10 < 3) continue;
      const std::size_t act = *std::ranges::max_element(example->acts, {}, [&](std::size_t each) { return model.odds[each]; });
      const double p = 1 / (1 + std::exp(-model.odds[act]));
      const double weight = example->planted() ? 1 : example->kind == "clean" ? kClean : kHonest;
      pulls.push_back({act, weight * ((example->planted() ? 1 : 0) - p), weight * p * (1 - p) + 1e-6});
    }
    Tree tree = grower.grow(pulls);
    for (Node& node : tree) node.value *= kRate;
    for (std::size_t i = 0; i < data.acts.size(); ++i) model.odds[i] += value_of(tree, data.acts[i]);
    model.trees.push_back(std::move(tree));
  }
  return model;
}

void print(const Tree& tree, std::size_t at) {
  const Node& node = tree[at];
  if (node.less < 0) {
    std::printf(" =%.3f", node.value);
    return;
  }
  std::printf(" %s %g", std::string(kTraitNames[node.trait]).c_str(), node.threshold);
  print(tree, static_cast<std::size_t>(node.less));
  print(tree, static_cast<std::size_t>(node.more));
}

// Of the acts of an example the likeliest, and the likeliest of those that a row asks about.
struct Score {
  double best = -1e9, best_asked = -1e9;
};
using Scores = std::map<std::string, std::vector<Score>>;
Score score_of(const Data& data, const Model& model, const Example& example) {
  Score score;
  for (const std::size_t act : example.acts) {
    if (data.acts[act][find_trait("shared")] > 0) score.best = std::max(score.best, model.odds[act]);
    if (data.acts[act][find_trait("asks")] > 0) score.best_asked = std::max(score.best_asked, model.odds[act]);
  }
  return score;
}
// What is asked about from `likely` on, and of what the rows ask about what is more than `unlikely`.
void print(const Scores& scores, const char* title) {
  std::fprintf(stderr, "%s\n", title);
  for (const double likely : {-1.5, -1.0, -0.5, 0.0, 0.5, 1.0}) {
    for (const double less : {0.0, 0.5, 1.0, 1.5, 2.0}) {
      std::fprintf(stderr, "  %5.1f %5.1f", likely, likely - less);
      for (const auto& [kind, all] : scores) {
        const auto asked = static_cast<double>(
            std::ranges::count_if(all, [&](const Score& each) { return each.best > likely || each.best_asked > likely - less; }));
        std::fprintf(stderr, "  %s %.1f %%", kind.c_str(), 100 * asked / static_cast<double>(all.size()));
      }
      std::fprintf(stderr, "\n");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  const auto folds = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 0);
  const std::string half = argc > 3 ? argv[3] : "-";
  std::puts("R\"(");
  for (const bool heard : {true, false}) {
    const Data data = read(argv[1], heard);
    Scores left_out, learned;
    for (std::uint32_t fold = 0; fold < folds; ++fold) {
      const auto is_out = [&](const Example& each) {
        const bool mine = half == "-" || each.half == half || each.half == "short-" + half;
        return mine && each.turn % folds == fold;
      };
      std::vector<const Example*> some;
      for (const Example& example : data.examples) {
        if (!is_out(example)) some.push_back(&example);
      }
      const Model model = train(data, some);
      for (const Example& example : data.examples) {
        if (!is_out(example) || example.half.starts_with("short-")) continue;
        left_out[example.kind].push_back(score_of(data, model, example));
        if (std::getenv("TELL") != nullptr && (model.best(example) > -0.5) != example.planted())
          std::fprintf(stderr, "wrong %s %s %s %.2f\n", heard ? "heard" : "unheard", example.kind.c_str(), example.name.c_str(),
                       model.best(example));
      }
    }
    if (folds > 0) print(left_out, heard ? "left out, with the user's words" : "left out, without");
    if (std::getenv("ONLY_FOLDS") != nullptr) continue;
    std::vector<const Example*> all;
    for (const Example& example : data.examples) all.push_back(&example);
    const Model model = train(data, all);
    for (const Example* example : all) learned[example->kind].push_back(score_of(data, model, *example));
    print(learned, heard ? "trained on, with the user's words" : "trained on, without");
    std::printf("%s =%g\n", heard ? "heard" : "unheard", model.start);
    for (const Tree& tree : model.trees) {
      std::printf("%s", heard ? "heard" : "unheard");
      print(tree, 0);
      std::printf("\n");
    }
  }
  std::puts(")\"");
}
