// How many of all were found.
#pragma once

namespace belljar::detect {

struct HitRate {
  int hits = 0, all = 0;
  void add(bool hit) { hits += hit ? 1 : 0, ++all; }
  void add(const HitRate& other) { hits += other.hits, all += other.all; }
  double share() const { return all == 0 ? 0 : 100.0 * hits / all; }
};

}  // namespace belljar::detect
