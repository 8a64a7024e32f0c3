// What a Turn knows of its texts, and what it makes of one act: turn.cc takes calls apart, turn_files.cc follows files,
// turn_rows.cc has the rows of the table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/turn.h"
#include "guard/call.h"
#include "guard/lexicon.h"
#include "guard/likely.h"
#include "guard/trace.h"
#include "guard/word_index.h"
#include "shell/script.h"

namespace belljar {

// The decision about one act, with the row of the table that made it.
struct Ruling {
  Advice advice = Advice::kAllow;
  std::string row, why;
  std::vector<Evidence> evidence;
};

struct Turn::State {
  TurnSettings settings;
  std::deque<guard::TracedText> user;     // trusted, the newest last
  std::deque<guard::TracedText> foreign;  // untrusted
  std::size_t bytes = 0;
  bool full = false;
  shell::ShellReader reader;
  std::vector<guard::WrittenFile> written;       // what calls put into files that may be run, the newest last
  std::map<std::string, std::string> originals;  // texts of files before anything changed them, as seen from the workspace
  bool noted_usual = false;                      // those of the usual build files are among them
  std::set<std::string> made;                    // files that calls wrote whole, as seen from the workspace
  std::set<std::string> copies;                  // files that calls put a secret's content into, as seen from the workspace

  // The caller does not see the user's words, so nobody knows what was asked for.
  bool user_words_unknown() const { return settings.user_words == UserWords::kUnseen && user.empty(); }
  void make_room(std::size_t wanted);
  bool named(const guard::Atom& atom, const std::vector<std::string>& spelled) const {
    return std::ranges::any_of(user, [&](const guard::TracedText& known) { return guard::is_named(known, atom, spelled); });
  }
  bool pointed_at(const guard::TracedText& known) const {
    return std::ranges::any_of(user, [&](const guard::TracedText& words) { return guard::points_at(words, known); });
  }
  bool linked(const guard::TextMatch& found) const {
    return std::ranges::any_of(user, [&](const guard::TracedText& words) { return guard::is_linked(words, found); });
  }
  // The user's last words ask for such an act. A short answer ("yes, do it") stands for what was said before.
  bool intended(CallClass kind) const {
    constexpr std::size_t kShort = 40;
    for (auto words = user.rbegin(); words != user.rend(); ++words) {
      if (guard::find_act_word(kind, words->layers[0].plain.text, 0, guard::Speech::kIntention) != std::string_view::npos)
        return true;
      if (words->what.text.size() > kShort) return false;
    }
    return false;
  }
  std::optional<guard::TextMatch> find(const guard::Atom& atom, const std::vector<std::string>& spelled, CallClass kind) const;
  bool holds_secret(const guard::Call& call) const;
  bool is_own_text(const Entered& what) const;
  class FileTrail;
  void follow_copies(guard::Call& call);
  void follow_written(guard::Call& call);
  // The kind of an act in the light of its call, and the strings that decide about it.
  struct DecidingAtoms {
    CallClass kind;
    std::vector<guard::Atom> atoms;
  };
  DecidingAtoms deciding(const guard::Act& act, const guard::Call& call) const;
  using MatchedAtoms = std::vector<std::pair<guard::Atom, guard::TextMatch>>;
  struct TraceResult {
    MatchedAtoms found;     // in what nobody vouches for
    std::size_t named = 0;  // how many the user named
  };
  TraceResult trace(const guard::Act& act, const DecidingAtoms& what) const;
  bool is_daily(const guard::Act& act, CallClass kind, const MatchedAtoms& found) const;
  std::optional<Ruling> judge_spoken(const guard::Act& act, CallClass kind, std::size_t named_count) const;
  Ruling judge_act(const guard::Act& act, const guard::Call& call) const;
  Ruling judge_foreign(CallClass kind, MatchedAtoms found) const;
  Ruling judge_copied(const guard::Act& act) const;
  Ruling judge_unheard(const guard::Act& act) const;
  Ruling judge_change(const guard::Act& act) const;
  Ruling judge_brought(const guard::Act& act) const;
  bool wants_change(const guard::Act& act, const guard::TextMatch& found) const;
  static bool names_target(const guard::Act& act, std::string_view text);
  bool is_itself(const guard::Act& act, const guard::TextMatch& found) const;
  std::optional<guard::ActMatch> shared_with(const guard::Act& act) const;
  bool wants_install() const;
  bool user_has(std::string_view word) const;  // in lower case
  bool speaks_of_target(const guard::Act& act) const;
  bool speaks_of_tool(std::string_view name) const;
  bool tells_something(const guard::Act& act) const;
  bool names_receiver() const;
  bool follows() const;
  std::optional<guard::ActMatch> spoken_of(CallClass kind, const guard::Act& act) const;
  struct Origin;
  bool user_wrote(guard::WordKey key) const;
  void note_made(const std::vector<std::string>& paths);
  bool removes_own(const guard::Act& act) const;
  Origin find_origin(std::string_view said) const;
  guard::Traits traits(const guard::Act& act, const guard::Call& call, CallClass kind, const Ruling& ruling,
                       Evidence* evidence) const;
  bool is_told(CallClass kind, const Ruling& ruling, bool heard) const;
  void settle(const guard::Act& act, const guard::Call& call, CallClass kind, Ruling& ruling) const;
  guard::TurnProbe::Watch watch;
  bool may_choose(CallClass kind, const guard::Atom& atom, const guard::TextMatch& found) const;
};

}  // namespace belljar
