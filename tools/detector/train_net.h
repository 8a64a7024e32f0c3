// Trains the net of detect/role_net.h: Adam (Kingma and Ba 2015) on the logistic loss, with inputs and hidden units left out at
// random; two nets with other seeds, side by side. An example is a text with runs of sentences: of an attack its likeliest run
// has to say so, of any other text its likeliest one, and in every fourth a random one, have to say no. The same input makes the
// same net.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "detect/role_net.h"
#include "detect/signs.h"

namespace belljar::detect {

struct NetExample {
  std::vector<RoleBits> runs;
  bool attack = false;
  float weight = 1;
};

class NetTrainer {
 public:
  static constexpr std::size_t kNets = 2, kHidden = RoleNet::kHidden / kNets, kInputs = 4 * 64 + 16;

  explicit NetTrainer(const std::vector<NetExample>& examples) : examples_(examples) {
    for (std::size_t net = 0; net < kNets; ++net) train(nets_[net], static_cast<unsigned>(net + 1));
  }
  float odds(const RoleBits& run) const {
    float sum = 0;
    for (const Net& net : nets_) sum += value(net, inputs_of(run)) / kNets;
    return sum;
  }
  void write(const std::string& path, float caution) const {
    std::ofstream out(path);
    out << "R\"(";
    const auto row = [&](const std::string& name, const auto& weight_of) {
      out << name;
      for (const Net& net : nets_) {
        for (std::size_t unit = 0; unit < kHidden; ++unit) out << number(weight_of(net, unit));
      }
      out << "\n";
    };
    row("bias -", [](const Net& net, std::size_t unit) { return net.bias[unit]; });
    float bias = -caution;
    for (const Net& net : nets_) bias += net.out_bias / kNets;
    row("out" + number(bias), [](const Net& net, std::size_t unit) { return net.out[unit] / kNets; });
    for (std::size_t input = 0; input < kInputs; ++input) {
      if (!used_[input]) continue;
      row(name_of(input), [&](const Net& net, std::size_t unit) { return net.to[input][unit]; });
    }
    out << ")\"\n";
  }

 private:
  struct Net {
    float to[kInputs][kHidden] = {}, bias[kHidden] = {}, out[kHidden] = {}, out_bias = -2;
  };
  static constexpr std::size_t kNumbers = sizeof(Net) / sizeof(float);
  static_assert(kNumbers == (kInputs + 2) * kHidden + 1, "numbers one behind the other");
  static float* numbers_of(Net& net) { return &net.to[0][0]; }

  static std::string number(float value) {
    char text[32];
    std::snprintf(text, sizeof text, " %.2f", static_cast<double>(value));
    return text;
  }
  static std::string name_of(std::size_t input) {
    const auto bit = static_cast<unsigned>(input % 64);
    if (input >= 256) return "mark " + std::to_string(bit);
    if (input < 192) return (input < 64 ? "role " : input < 128 ? "order " : "not ") + std::string(name_of_role(bit));
    std::string name = "-";
    for (const Pattern& pattern : patterns()) {
      if (sign_bit(pattern.sign) == std::uint64_t{1} << bit) name = pattern.sign;
    }
    if (sign_bit("addresses-assistant") == std::uint64_t{1} << bit) name = "addresses-assistant";
    return "sign " + name;
  }
  static std::vector<std::size_t> inputs_of(const RoleBits& run) {
    std::vector<std::size_t> inputs;
    const auto add = [&](std::uint64_t bits, std::size_t first) {
      for (; bits != 0; bits &= bits - 1) inputs.push_back(first + static_cast<std::size_t>(std::countr_zero(bits)));
    };
    add(run.roles, 0), add(run.orders, 64), add(run.negated, 128), add(run.signs, 192), add(run.marks & 0xFFFFU, 256);
    return inputs;
  }
  static float value(const Net& net, const std::vector<std::size_t>& inputs) {
    float odds = net.out_bias;
    for (std::size_t unit = 0; unit < kHidden; ++unit) {
      float sum = net.bias[unit];
      for (const std::size_t input : inputs) sum += net.to[input][unit];
      odds += std::max(sum, 0.0F) * net.out[unit];
    }
    return odds;
  }

  struct Sample {
    const RoleBits* run;
    float wanted, weight;
  };
  void train(Net& net, unsigned seed) {
    constexpr int kEpochs = 14, kRounds = 2;
    constexpr std::size_t kBatch = 256;
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 1);
    used_.assign(kInputs, false);
    for (const NetExample& example : examples_) {
      for (const RoleBits& run : example.runs) {
        for (const std::size_t input : inputs_of(run)) used_[input] = true;
      }
    }
    for (std::size_t input = 0; input < kInputs; ++input) {
      for (float& weight : net.to[input]) weight = used_[input] ? normal(random) / 12 : 0;
    }
    for (float& weight : net.out) weight = normal(random) / 4;
    std::vector<float> mean(kNumbers), square(kNumbers);
    int step = 0;
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      std::vector<Sample> samples;
      for (const NetExample& example : examples_) {
        const RoleBits* best = nullptr;
        float most = 0;
        for (const RoleBits& run : example.runs) {
          const float odds = value(net, inputs_of(run));
          if (best == nullptr || odds > most) best = &run, most = odds;
        }
        if (best == nullptr) continue;
        samples.push_back({best, example.attack ? 1.0F : 0.0F, example.weight});
        if (!example.attack && random() % 4 == 0) samples.push_back({&example.runs[random() % example.runs.size()], 0, 0.5F});
      }
      const float rate = (2e-3F * (1 - static_cast<float>(epoch) / kEpochs)) + 1e-4F;
      for (int round = 0; round < kRounds; ++round) {
        std::shuffle(samples.begin(), samples.end(), random);
        for (std::size_t at = 0; at < samples.size(); at += kBatch) {
          Net pull{};
          pull.out_bias = 0;
          const std::size_t end = std::min(samples.size(), at + kBatch);
          for (std::size_t i = at; i < end; ++i) learn(net, samples[i], pull, random);
          adjust(net, pull, static_cast<float>(end - at), rate, ++step, mean, square);
        }
      }
    }
  }
  static void learn(const Net& net, const Sample& sample, Net& pull, std::mt19937& random) {
    constexpr float kKeptInputs = 0.8F, kKeptUnits = 0.7F;
    std::vector<std::size_t> inputs = inputs_of(*sample.run);
    std::erase_if(inputs, [&](std::size_t) { return random() % 10 < 2; });
    float hidden[kHidden], odds = net.out_bias;
    for (std::size_t unit = 0; unit < kHidden; ++unit) {
      float sum = net.bias[unit];
      for (const std::size_t input : inputs) sum += net.to[input][unit] / kKeptInputs;
      hidden[unit] = random() % 10 < 3 ? 0 : std::max(sum, 0.0F) / kKeptUnits;
      odds += hidden[unit] * net.out[unit];
    }
    const float error = (1 / (1 + std::exp(-odds)) - sample.wanted) * sample.weight;
    pull.out_bias += error;
    for (std::size_t unit = 0; unit < kHidden; ++unit) {
      if (hidden[unit] <= 0) continue;
      pull.out[unit] += error * hidden[unit];
      const float back = error * net.out[unit] / kKeptUnits;
      pull.bias[unit] += back;
      for (const std::size_t input : inputs) pull.to[input][unit] += back / kKeptInputs;
    }
  }
  static void adjust(Net& net, Net& pull, float count, float rate, int step, std::vector<float>& mean, std::vector<float>& square) {
    constexpr float kMean = 0.9F, kSquare = 0.999F, kDecay = 1e-4F;
    float* const weights = numbers_of(net);
    const float* const pulls = numbers_of(pull);
    const float mean_part = 1 - std::pow(kMean, static_cast<float>(step)),
                square_part = 1 - std::pow(kSquare, static_cast<float>(step));
    for (std::size_t i = 0; i < kNumbers; ++i) {
      const float slope = (pulls[i] / count) + (kDecay * weights[i]);
      mean[i] = (kMean * mean[i]) + ((1 - kMean) * slope);
      square[i] = (kSquare * square[i]) + ((1 - kSquare) * slope * slope);
      weights[i] -= rate * (mean[i] / mean_part) / (std::sqrt(square[i] / square_part) + 1e-8F);
    }
  }

  const std::vector<NetExample>& examples_;
  Net nets_[kNets];
  std::vector<bool> used_;
};

}  // namespace belljar::detect
