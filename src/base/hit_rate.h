// How many of all were found, and how sure that is.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

namespace belljar {

struct HitRate {
  int hits = 0, all = 0;
  void add(bool hit) { hits += hit ? 1 : 0, ++all; }
  void add(const HitRate& other) { hits += other.hits, all += other.all; }
  double rate() const { return all == 0 ? 0 : 1.0 * hits / all; }
  double share() const { return 100 * rate(); }  // in per cent
  // The score interval of Wilson (1927), 95 %, of rate(). {0, 0} of none.
  std::pair<double, double> interval() const {
    if (all == 0) return {0, 0};
    constexpr double kZ = 1.96;
    const double n = all, p = rate(), zz = kZ * kZ;
    const double middle = (p + zz / (2 * n)) / (1 + zz / n);
    const double reach = kZ * std::sqrt(p * (1 - p) / n + zz / (4 * n * n)) / (1 + zz / n);
    return {std::max(0.0, middle - reach), std::min(1.0, middle + reach)};
  }
};

}  // namespace belljar
