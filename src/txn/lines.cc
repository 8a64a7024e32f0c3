// Differences and merges by lines.
//
// find_matches() is Myers' greedy algorithm on line numbers, after common lines at both ends were set aside.
// The furthest points of each round are kept, so that the path can be read backwards; that is quadratic in
// the number of edits, which kMostEdits bounds. Beyond it the part that was matched so far is used, and the
// rest counts as replaced: a worse patch, but a correct one.
//
// merge() is the classic three-way merge (diff3). Lines of the base that both sides kept are fixed points.
// Between two of them, if one side equals the base, the other side's lines are taken; if both made the same
// change, it is taken once; otherwise it is a conflict. Changes that touch are in one such gap, so they
// conflict.
#include "txn/lines.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/format.h"

namespace belljar::txn {
namespace {

using Lines = std::vector<std::string_view>;
using Numbers = std::vector<std::uint32_t>;

// Lines as numbers: equal lines, equal numbers.
class Numbering {
 public:
  Numbers number(const Lines& lines) {
    Numbers result;
    result.reserve(lines.size());
    for (const std::string_view line : lines)
      result.push_back(known_.try_emplace(line, static_cast<std::uint32_t>(known_.size())).first->second);
    return result;
  }

 private:
  std::unordered_map<std::string_view, std::uint32_t> known_;
};

// The greedy algorithm of the paper, forward, with the furthest points of each round kept to walk back along.
class Myers {
 public:
  Myers(const Numbers& left, const Numbers& right, std::size_t from, std::size_t left_end, std::size_t right_end)
      : left_(left), right_(right), from_(from), n_(static_cast<long>(left_end - from)), m_(static_cast<long>(right_end - from)) {}

  // Pairs of equal lines in between, first to last.
  std::vector<Match> run() {
    const long most = std::min<long>(n_ + m_, static_cast<long>(kMostEdits));
    furthest_.assign(static_cast<std::size_t>(2 * most + 3), 0);
    middle_ = most + 1;
    for (long d = 0; d <= most; ++d) {
      if (advance(d)) return walk_back(d, n_, m_);
      rounds_.emplace_back(furthest_.begin() + (middle_ - d), furthest_.begin() + (middle_ + d + 1));
    }
    // Too different: what the furthest point has is kept, the rest counts as replaced.
    long best = -most - 1;
    for (long k = -most; k <= most; k += 2) {
      const long x = at(k);
      if (x > n_ || x - k > m_ || x - k < 0) continue;
      if (best < -most || 2 * x - k > 2 * at(best) - best) best = k;
    }
    if (best < -most) return {};
    return walk_back(most, at(best), at(best) - best);
  }

 private:
  long& at(long k) { return furthest_[static_cast<std::size_t>(middle_ + k)]; }

  bool advance(long d) {
    for (long k = -d; k <= d; k += 2) {
      long x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
      long y = x - k;
      while (x < n_ && y < m_ && same(x, y)) ++x, ++y;
      at(k) = x;
      if (x >= n_ && y >= m_) return true;
    }
    return false;
  }

  bool same(long x, long y) const {
    return left_[from_ + static_cast<std::size_t>(x)] == right_[from_ + static_cast<std::size_t>(y)];
  }

  std::vector<Match> walk_back(long d, long x, long y) const {
    std::vector<Match> found;
    for (; d > 0; --d) {
      const auto& before = rounds_[static_cast<std::size_t>(d - 1)];  // diagonals -(d-1) .. d-1
      const auto value = [&](long k) { return k < -(d - 1) || k > d - 1 ? -1L : before[static_cast<std::size_t>(k + d - 1)]; };
      const long k = x - y;
      const bool down = k == -d || (k != d && value(k - 1) < value(k + 1));
      const long start_x = down ? value(k + 1) : value(k - 1) + 1;
      add(found, start_x, start_x - k, x - start_x);
      x = down ? value(k + 1) : value(k - 1);
      y = x - (down ? k + 1 : k - 1);
    }
    add(found, 0, 0, x);
    std::reverse(found.begin(), found.end());
    return found;
  }

  void add(std::vector<Match>& found, long x, long y, long count) const {
    if (count > 0)
      found.push_back({from_ + static_cast<std::size_t>(x), from_ + static_cast<std::size_t>(y), static_cast<std::size_t>(count)});
  }

  const Numbers& left_;
  const Numbers& right_;
  std::size_t from_;
  long n_, m_, middle_ = 0;
  std::vector<long> furthest_;
  std::vector<std::vector<long>> rounds_;
};

struct LineChange {
  std::size_t left, left_count, right, right_count;
};

std::vector<LineChange> changes_between(const std::vector<Match>& matches) {
  std::vector<LineChange> changes;
  std::size_t left = 0;
  std::size_t right = 0;
  for (const Match& match : matches) {
    if (match.left > left || match.right > right) changes.push_back({left, match.left - left, right, match.right - right});
    left = match.left + match.count;
    right = match.right + match.count;
  }
  return changes;
}

void put_line(std::string& text, char mark, std::string_view line) {
  text += mark;
  text += line;
  if (!line.ends_with('\n')) text += "\n\\ No newline at end of file\n";
}

// "12", or "12,3" when there is not just one line; the line before when there is none.
std::string range(std::size_t start, std::size_t count) {
  if (count == 1) return format("{}", start + 1);
  return format("{},{}", count == 0 ? start : start + 1, count);
}

std::string put_hunk(const Lines& left, const Lines& right, const LineChange* first, const LineChange* last) {
  constexpr std::size_t kContext = 3;
  const std::size_t lead = std::min(kContext, first->left);
  const std::size_t end = last->left + last->left_count;
  const std::size_t tail = std::min(kContext, left.size() - end);
  const std::size_t left_start = first->left - lead;
  const std::size_t right_start = first->right - lead;
  std::string text = format("@@ -{} +{} @@\n", range(left_start, end + tail - left_start),
                            range(right_start, last->right + last->right_count + tail - right_start));
  std::size_t at = left_start;
  for (const LineChange* change = first; change <= last; ++change) {
    for (; at < change->left; ++at) put_line(text, ' ', left[at]);
    for (; at < change->left + change->left_count; ++at) put_line(text, '-', left[at]);
    for (std::size_t i = 0; i < change->right_count; ++i) put_line(text, '+', right[change->right + i]);
  }
  for (; at < end + tail; ++at) put_line(text, ' ', left[at]);
  return text;
}

void append(std::string& text, const Lines& lines, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i) text += lines[i];
}

// Where a line of the base is in the other text, as far as it was not changed: base line -> line there + 1, 0: changed.
std::vector<std::size_t> places(const std::vector<Match>& matches, std::size_t lines) {
  std::vector<std::size_t> result(lines, 0);
  for (const Match& match : matches) {
    for (std::size_t i = 0; i < match.count; ++i) result[match.left + i] = match.right + i + 1;
  }
  return result;
}

}  // namespace

std::vector<std::string_view> split_lines(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end == std::string_view::npos ? end : end + 1));
    text.remove_prefix(lines.back().size());
  }
  return lines;
}

std::vector<Match> find_matches(const Lines& left, const Lines& right) {
  Numbering numbering;
  const Numbers a = numbering.number(left);
  const Numbers b = numbering.number(right);
  std::size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  std::size_t left_end = a.size();
  std::size_t right_end = b.size();
  while (left_end > head && right_end > head && a[left_end - 1] == b[right_end - 1]) --left_end, --right_end;
  std::vector<Match> matches;
  if (head > 0) matches.push_back({0, 0, head});
  if (left_end > head && right_end > head) {
    const std::vector<Match> inner = Myers(a, b, head, left_end, right_end).run();
    matches.insert(matches.end(), inner.begin(), inner.end());
  }
  if (left_end < a.size()) matches.push_back({left_end, right_end, a.size() - left_end});
  matches.push_back({a.size(), b.size(), 0});
  return matches;
}

std::string unified_hunks(std::string_view left, std::string_view right) {
  constexpr std::size_t kGap = 6;  // twice the context
  const Lines a = split_lines(left);
  const Lines b = split_lines(right);
  const std::vector<LineChange> changes = changes_between(find_matches(a, b));
  std::string text;
  for (std::size_t first = 0; first < changes.size();) {
    std::size_t last = first;
    while (last + 1 < changes.size() && changes[last + 1].left - (changes[last].left + changes[last].left_count) <= kGap) ++last;
    text += put_hunk(a, b, &changes[first], &changes[last]);
    first = last + 1;
  }
  return text;
}

std::optional<std::string> merge(std::string_view base_text, std::string_view our_text, std::string_view their_text) {
  const Lines base = split_lines(base_text);
  const Lines ours = split_lines(our_text);
  const Lines theirs = split_lines(their_text);
  const auto our_place = places(find_matches(base, ours), base.size());
  const auto their_place = places(find_matches(base, theirs), base.size());
  std::string merged;
  std::size_t b = 0;
  std::size_t o = 0;
  std::size_t t = 0;
  for (;;) {
    // Lines that all three have, at the place where each of them stands.
    while (b < base.size() && our_place[b] == o + 1 && their_place[b] == t + 1) {
      merged += base[b];
      ++b, ++o, ++t;
    }
    std::size_t next = b;
    while (next < base.size() && (our_place[next] == 0 || their_place[next] == 0)) ++next;
    const std::size_t our_end = next < base.size() ? our_place[next] - 1 : ours.size();
    const std::size_t their_end = next < base.size() ? their_place[next] - 1 : theirs.size();
    const auto same = [](const Lines& x, std::size_t x_from, std::size_t x_to, const Lines& y, std::size_t y_from,
                         std::size_t y_to) {
      return std::equal(x.begin() + static_cast<std::ptrdiff_t>(x_from), x.begin() + static_cast<std::ptrdiff_t>(x_to),
                        y.begin() + static_cast<std::ptrdiff_t>(y_from), y.begin() + static_cast<std::ptrdiff_t>(y_to));
    };
    if (same(theirs, t, their_end, base, b, next) || same(ours, o, our_end, theirs, t, their_end)) append(merged, ours, o, our_end);
    else if (same(ours, o, our_end, base, b, next)) append(merged, theirs, t, their_end);
    else return std::nullopt;
    b = next, o = our_end, t = their_end;
    if (b == base.size()) return merged;
  }
}

bool is_binary(std::string_view text) noexcept { return text.substr(0, 8000).find('\0') != std::string_view::npos; }

}  // namespace belljar::txn
