// What the model and the net make of a few sentences that follow each other, and what of them is only quoted.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "detect/model.h"
#include "detect/role_net.h"
#include "detect/speech.h"
#include "detect/work.h"

namespace belljar::detect {
namespace {

// What the model's log-odds are worth among the other signs.
int weight_of(float odds) noexcept { return odds < -1 ? 0 : odds < 0 ? 25 : 50; }

}  // namespace

// Each quotation once: of many that stand together each is beside the others.
bool Speech::is_talked_about(std::uint32_t quotation) const {
  if (quotation == 0 || talk_.empty()) return false;
  if (talked_about_.size() <= quotation) talked_about_.resize(quotations_.size());
  signed char& known = talked_about_[quotation];
  if (known == 0) known = find_talk(quotation) ? 1 : -1;
  return known > 0;
}

// The nearest on either side: one that is farther needs the same lines between, and more. Or what introduces it says so: the line
// above a block of code, or above a list of quotations, that ends with a colon.
bool Speech::find_talk(std::uint32_t quotation) const {
  const std::size_t begin = quotations_.begin_of(quotation);
  const auto after = std::ranges::lower_bound(talk_, begin);
  if ((after != talk_.begin() && quotations_.joins(*(after - 1), begin)) ||
      (after != talk_.end() && quotations_.joins(quotations_.end_of(quotation), *after)))
    return true;
  const auto [from, to] = quotations_.introduction_of(quotation);
  const auto said = std::ranges::lower_bound(talk_, from);
  return said != talk_.end() && *said < to;
}

bool Speech::excuses(std::size_t begin, std::size_t end) const {
  const std::uint32_t quotation = quotations_.around(begin);
  return quotation != 0 && end < quotations_.end_of(quotation) && is_talked_about(quotation);
}

// Without what it only quotes.
float Speech::score_of(const Sentence& sentence) const {
  return sentence.quoted > 0 && is_talked_about(sentence.quotation) ? sentence.score - sentence.quoted : sentence.score;
}

bool Speech::has_roles(const Sentence& sentence) const noexcept {
  return (sentence.plain.roles | sentence.plain.signs) != 0 || sentence.cited != 0;
}

RoleBits Speech::bits_of(const Sentence& sentence) const {
  RoleBits bits = sentence.plain;
  if (sentence.cited != 0 && !is_talked_about(sentence.quotation)) bits.add(cited_[sentence.cited]);
  return bits;
}

float Speech::best_ending_at(std::size_t sentence) const {
  float sum = weights_.bias(), best = -1e9F;
  RoleNet::Run run(net_);
  for (std::size_t i = sentence + 1; i-- > 0 && i + kMostTogether > sentence;) {
    run.add(bits_of(sentences_[i]));
    // The net is seldom sure that there is nothing: it counts two less here.
    constexpr float kUnsure = 2;
    best = std::max({best, sum += score_of(sentences_[i]), run.odds() - kUnsure}), count_steps(1);
  }
  return best;
}

bool Speech::doubts(std::size_t begin, std::size_t end) const {
  constexpr float kDoubt = -3;
  const auto first = std::ranges::partition_point(sentences_, [&](const Sentence& one) { return one.end <= begin; });
  std::size_t more = 2;  // what belongs to it may follow
  for (auto one = first; one != sentences_.end() && (one->first < end || more-- > 0); ++one) {
    if (best_ending_at(static_cast<std::size_t>(one - sentences_.begin())) >= kDoubt) return false;
  }
  return true;
}

// Each sentence alone, or with as few of the three before it as say most: what is innocent beside them is none of theirs.
void Speech::judge_all() {
  int before[kMostTogether + 1] = {};  // what was said of the sentences up to the last one, by the number of the first
  for (std::size_t last = 0; last < sentences_.size(); ++last) {
    before[last % std::size(before)] = 0;
    if (sentences_[last].score <= 0 && !has_roles(sentences_[last]))
      continue;  // it adds nothing: marks alone are not worth a run of the net
    float sum = weights_.bias();
    RoleNet::Run run(net_);
    int weight = 0;
    std::uint32_t begin = 0;
    for (std::size_t i = last + 1; i-- > 0 && i + kMostTogether > last;) {
      run.add(bits_of(sentences_[i]));
      const int said = weight_of(std::max(sum += score_of(sentences_[i]), run.odds()));
      const bool said_before = std::exchange(before[i % std::size(before)], said) >= said;  // and it is found there
      if (said > weight && !said_before) weight = said, begin = sentences_[i].begin;
    }
    if (weight > 0) found_.push_back({kLikely, weight, begin, sentences_[last].end});
  }
}

}  // namespace belljar::detect
