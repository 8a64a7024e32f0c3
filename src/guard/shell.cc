#include "guard/shell.h"

#include <tree_sitter/api.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "guard/grammar.h"
#include "guard/letters.h"
#include "guard/numbers.h"
#include "guard/places.h"
#include "guard/variables.h"
#include "guard/words.h"
#include "guard/wrappers.h"

namespace belljar::guard {

struct ShellReader::State {
  Grammar grammar;
};

namespace {

struct Child {
  TSNode node;
  std::string_view field;
};

// Where `cd WORD` leads from `here`; "" when nobody knows.
std::string directory_behind(const std::string& here, const Word& word) {
  const bool home = word.text == "~" || word.text.starts_with("~/");
  if (!word.fixed && !(home && word.bounded && !word.pattern && word.lead >= word.text.size())) return {};
  if (word.text.starts_with('/') || home) return normal_place(word.text);
  return here.empty() || word.text.empty() || word.text == "-" ? std::string() : normal_place(here + "/" + word.text);
}

// What `part` makes of it in its own shell: cd, pushd and popd of bash(1).
std::string directory_after(const Part& part, const std::string& here) {
  const std::string_view name = program_name(part);
  if (name != "cd" && name != "pushd" && name != "popd") return here;
  std::vector<const Word*> words;
  for (std::size_t i = 1; i < part.argv.size(); ++i) {
    const bool option = part.argv[i].fixed && part.argv[i].text.size() > 1 && part.argv[i].text[0] == '-';
    if (!option) words.push_back(&part.argv[i]);
  }
  if (words.empty()) return name == "cd" ? "~" : "";
  return name == "popd" || words.size() > 1 ? "" : directory_behind(here, *words[0]);
}

bool is_cd(const Part& part) noexcept {
  const std::string_view name = program_name(part);
  return name == "cd" || name == "pushd" || name == "popd";
}

// Where a `cd` cannot fail on an ordinary system.
bool surely_exists(std::string_view directory) {
  return directory == "/" || directory == "~" || directory == "/tmp" || directory == "/var/tmp" || directory == "/usr/local" ||
         (is_vital(directory) && std::ranges::count(directory, '/') == 1);
}

// The working directory of the shell that reads.
struct Place {
  std::string directory;             // Part::directory of what comes next
  std::vector<std::string> perhaps;  // Part::perhaps of what comes next
  std::vector<std::string> failed;   // as `perhaps`, where the statement before failed: not behind its `&&`
  bool operator==(const Place&) const = default;
};

void add_places(std::vector<std::string>& places, const std::vector<std::string>& more) {
  for (const std::string& place : more) {
    const bool matters = !place.empty() && (is_vital(place) || is_system(place));
    if (matters && std::ranges::find(places, place) == places.end()) places.push_back(place);
  }
}

// All that `place` may be.
std::vector<std::string> all_of(const Place& place) {
  std::vector<std::string> all{place.directory};
  all.insert(all.end(), place.perhaps.begin(), place.perhaps.end());
  return all;
}

// Reads one text; a wrapper with a script of its own makes another Reader that writes to the same Script.
class Reader {
 public:
  Reader(Grammar& grammar, Script& out, std::string_view text)
      : grammar_(grammar), out_(out), text_(text), variables_(grammar, text) {}

  void read();

  std::vector<std::string> inside;
  std::vector<Range> upstream;
  const Span* outer = nullptr;
  int opened = 0;
  std::string_view input;
  Dialect dialect = Dialect::kBash;
  bool follows_variables = true;
  Place place;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::now() + kMaxTime;

 private:
  Kind kind(TSNode node) const noexcept { return grammar_.kind(node); }
  Span span(TSNode node) const noexcept {
    return outer != nullptr ? *outer : Span{ts_node_start_byte(node), ts_node_end_byte(node)};
  }
  std::string_view raw(TSNode node) const noexcept { return between(ts_node_start_byte(node), ts_node_end_byte(node)); }
  std::string_view between(std::size_t begin, std::size_t end) const noexcept { return text_.substr(begin, end - begin); }
  void unread(Span where, std::string reason);
  void check(const Letters& letters);
  bool full(TSNode node);
  std::vector<Child> children(TSNode node, bool blank_between = true);

  void statement(TSNode node);
  void statements(TSNode node);
  void branches(TSNode node);
  void settle();
  void left(const Place& before);
  void move(const Part& part);
  void chain(TSNode node, std::vector<TSNode>& doubtful);
  void loop(TSNode node);
  void rounds(TSNode body, std::string_view name, const std::vector<Word>& values);
  bool loops_over_numbers(const std::vector<Child>& kids) const noexcept;
  void pipeline(TSNode node);
  void redirected(TSNode node);
  void function(TSNode node);
  void declaration(TSNode node);
  void command(TSNode node, std::vector<Redirect> redirects, std::vector<Word> more);
  void expression(TSNode node);
  void parameter(TSNode node);
  void test(TSNode node);
  void test_pieces(TSNode node, std::vector<TSNode>& pieces);
  void evaluated(TSNode node);
  void evaluated_letters(TSNode node);
  Word test_word(TSNode node, const Word& word);
  bool is_number(TSNode node) const noexcept { return kind(node) == Kind::kArithmetic || is_count(without_blanks(raw(node))); }
  void doubt(TSNode node) { unread(span(node), "the shell evaluates a text that only the run decides"); }

  Assignment assignment(TSNode node);
  void array(TSNode node);
  void redirect(TSNode node, std::vector<Redirect>& redirects, std::vector<Word>& more);
  void here_document(TSNode node, std::vector<Redirect>& redirects, std::vector<Word>& more, std::vector<TSNode>& behind);
  Word here_body(TSNode node, bool literal, bool strip);
  void here_string(TSNode node, std::vector<Redirect>& redirects);

  Word word(TSNode node);
  void add_word(Word& word, TSNode node);
  void add_string(Word& word, TSNode node);
  void add_expansion(Word& word, TSNode node, bool quoted);
  bool add_value(Word& word, std::string_view expansion, bool quoted);
  void add_concatenation(Word& word, TSNode node);

  void give_input(Part& part);
  void emit(Part part);
  void open(const Part& part, int level);
  void open_script(const Word& script, const Part& part, const std::string& label, int level);

  Grammar& grammar_;
  Script& out_;
  std::string_view text_;
  int depth_ = 0;
  Numbers numbers_;
  Variables variables_;
  int rounds_ = 0;                            // of loops that were written out
  std::optional<Range> borrowed_;             // what made the value of a variable in the word that is read
  std::vector<std::uint32_t> substitutions_;  // where those that were read begin
};

// What runs in a shell of its own, or perhaps not, leaves `value` as it was.
class Restored {
 public:
  explicit Restored(Place& value) : value_(value), before_(value) {}
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;
  ~Restored() { value_ = std::move(before_); }

 private:
  Place& value_;
  Place before_;
};

// A label around what is read in this scope.
class Inside {
 public:
  Inside(std::vector<std::string>& labels, std::string label) : labels_(labels) { labels_.push_back(std::move(label)); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { labels_.pop_back(); }

 private:
  std::vector<std::string>& labels_;
};

class Deeper {
 public:
  explicit Deeper(int& depth) : depth_(depth) { ++depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  ~Deeper() { --depth_; }

 private:
  int& depth_;
};

void Reader::unread(Span where, std::string reason) {
  Unread found{std::move(reason), where};
  // A loop that is written out meets each place again.
  if (rounds_ > 0 && std::ranges::find(out_.unread, found) != out_.unread.end()) return;
  out_.unread.push_back(std::move(found));
}

void Reader::read() {
  if (const char* reason = unreadable(text_)) {
    const auto end = static_cast<std::uint32_t>(std::min<std::size_t>(text_.size(), UINT32_MAX));
    unread(outer != nullptr ? *outer : Span{0, end}, reason);
    return;
  }
  const bool late = std::chrono::steady_clock::now() > deadline;
  TSTree* tree = late ? nullptr : grammar_.parse(text_);
  if (tree == nullptr) {
    unread(outer != nullptr ? *outer : Span{0, static_cast<std::uint32_t>(text_.size())}, "the text takes too long to parse");
    return;
  }
  const TSNode root = ts_tree_root_node(tree);
  // The root spans what it holds; what lies around it must be blank too.
  const bool placed = kind(root) == Kind::kGroup && is_blank(between(0, ts_node_start_byte(root))) &&
                      is_blank(between(ts_node_end_byte(root), text_.size()));
  if (!placed) {
    unread(span(root), "the shell's grammar does not cover this");
  } else {
    const Letters letters = read_letters(grammar_, root, text_, dialect);
    variables_.of(root);
    if (!follows_variables || letters.hidden) variables_.stop();
    statements(root);
    check(letters);
  }
  ts_tree_delete(tree);
}

// Nothing that the shell may run is left: not as letters, not in a node that this file passed by, not in a variable.
void Reader::check(const Letters& letters) {
  const auto shown_at = [&](Span inside_text) { return outer != nullptr ? *outer : inside_text; };
  if (letters.hidden) unread(shown_at(*letters.hidden), "the shell may run what the grammar takes for letters");
  std::ranges::sort(substitutions_);
  for (const std::uint32_t begin : letters.substitutions) {
    if (std::ranges::binary_search(substitutions_, begin)) continue;
    unread(shown_at({begin, begin + 1}), "a substitution stands where none is read");
    break;
  }
  if (outer != nullptr) numbers_.doubt_all();  // the text around it may have assigned something else
  if (const auto where = numbers_.doubtful(out_))
    unread(*where, "arithmetic evaluates what a variable holds, and only the run decides that");
}

bool Reader::full(TSNode node) {
  const bool deep = depth_ > kMaxDepth;
  const bool late = std::chrono::steady_clock::now() > deadline;
  if (!deep && !late && out_.parts.size() < kMaxParts) return false;
  if (out_.unread.size() < kMaxParts)
    unread(span(node), deep   ? "the text nests deeper than is judged"
                       : late ? "the text takes too long to judge"
                              : "the text has more commands than are judged");
  return true;
}

// The kinds whose children are told apart by field: the tree finds a field by counting, so the time grows with the square.
bool has_fields(Kind kind) noexcept {
  return kind == Kind::kLoop || kind == Kind::kFunction || kind == Kind::kAssignment || kind == Kind::kFileRedirect ||
         kind == Kind::kHereDoc || kind == Kind::kHereString;
}

// In the order written; what stands between them must be blank, and what the grammar could not place is unread.
std::vector<Child> Reader::children(TSNode node, bool blank_between) {
  std::vector<Child> found;
  TSTreeCursor cursor = ts_tree_cursor_new(node);
  std::uint32_t end = ts_node_start_byte(node);
  const bool fields = has_fields(kind(node));
  const bool one_word = kind(node) == Kind::kConcatenation || kind(node) == Kind::kString;
  bool more = ts_tree_cursor_goto_first_child(&cursor);
  for (; more; more = ts_tree_cursor_goto_next_sibling(&cursor)) {
    if (found.size() >= (fields ? kMaxFields : kMaxChildren)) {
      unread(span(node), "the text has more words than are judged");
      break;
    }
    const TSNode child = ts_tree_cursor_current_node(&cursor);
    const char* field = fields ? ts_tree_cursor_current_field_name(&cursor) : nullptr;
    const std::uint32_t begin = ts_node_start_byte(child);
    if (blank_between && begin > end && (!is_blank(between(end, begin)) || (!one_word && is_glued(text_, end, begin))))
      unread(span(child), "shell and grammar read the blanks here differently");
    end = std::max(end, ts_node_end_byte(child));
    const bool error = ts_node_symbol(child) == static_cast<TSSymbol>(-1) || ts_node_is_missing(child);
    if (error) unread(span(child), "the shell's grammar does not cover this");
    else found.push_back({child, field == nullptr ? std::string_view() : field});
  }
  ts_tree_cursor_delete(&cursor);
  return found;
}

// --- statements ------------------------------------------------------------------------------------------------------------------

void Reader::statement(TSNode node) {
  const Deeper deeper(depth_);
  if (full(node)) return;
  switch (kind(node)) {
    case Kind::kToken:
      return;
    case Kind::kComment:
      // A `#` inside a word is a letter to the shell.
      if (const std::size_t at = ts_node_start_byte(node);
          at > 0 && std::string_view(" \t\n;&|()").find(text_[at - 1]) == std::string_view::npos)
        unread(span(node), "shell and grammar disagree where a comment begins");
      return;
    case Kind::kGroup:
      if (raw(node).starts_with("((")) doubt(node);  // arithmetic to the shell
      return branches(node);
    case Kind::kLoop:
      return loop(node);
    case Kind::kPipeline:
      return pipeline(node);
    case Kind::kCommand:
      return command(node, {}, {});
    case Kind::kRedirected:
      return redirected(node);
    case Kind::kFunction:
      return function(node);
    case Kind::kDeclaration:
      return declaration(node);
    case Kind::kAssignment: {
      Part part{.inside = inside, .span = span(node)};
      part.assignments.push_back(assignment(node));
      variables_.assign(part.assignments[0].name, part.assignments[0].value);
      return emit(std::move(part));
    }
    case Kind::kTest:
      return test(node);
    case Kind::kName:
      return expression(node);
    default:
      // `for x in WORDS`, `case WORD in`: only their substitutions run anything
      if (is_word(kind(node))) return expression(node);
      unread(span(node), "the shell's grammar does not cover this");
  }
}

void Reader::statements(TSNode node) {
  const auto kids = children(node);
  for (std::size_t i = 0; i < kids.size(); ++i) {
    std::optional<Restored> background;
    if (i + 1 < kids.size() && raw(kids[i + 1].node) == "&") background.emplace(place);
    statement(kids[i].node);
    if (kind(kids[i].node) != Kind::kToken) settle();
  }
}

// Behind `;` a statement may have failed.
void Reader::settle() {
  add_places(place.perhaps, std::exchange(place.failed, {}));
  constexpr std::size_t kMaxPlaces = 8;
  if (place.perhaps.size() <= kMaxPlaces) return;
  place.perhaps.resize(kMaxPlaces);
  const auto end = static_cast<std::uint32_t>(text_.size());
  unread(outer != nullptr ? *outer : Span{0, end}, "the text may run in more directories than are judged");
}

// What began at `before` may not have run.
void Reader::left(const Place& before) {
  if (before.directory != place.directory || before.perhaps != place.perhaps) add_places(place.failed, all_of(before));
}

void Reader::move(const Part& part) {
  if (!is_cd(part)) return;
  const Place before = place;
  place.directory = directory_after(part, before.directory);
  place.perhaps.clear();
  std::vector<std::string> moved;
  for (const std::string& each : before.perhaps) moved.push_back(directory_after(part, each));
  std::erase(moved, place.directory);
  add_places(place.perhaps, moved);
  if (!surely_exists(place.directory)) add_places(place.failed, all_of(before));
}

// What a list, an `if`, a `case`, a subshell ... assigns is known behind it only where it surely ran in this shell.
void Reader::branches(TSNode node) {
  const std::string_view type = ts_node_type(node);
  if (type == "list") {
    std::vector<TSNode> doubtful;
    chain(node, doubtful);
    for (const TSNode maybe : doubtful) variables_.forget(maybe);
    return;
  }
  constexpr std::string_view kSure[] = {"program", "compound_statement", "do_group", "negated_command", "variable_assignments"};
  const bool sure = std::ranges::find(kSure, type) != std::end(kSure);
  std::optional<Restored> restored;
  if (!sure) restored.emplace(place);
  const bool one_of_several = type == "if_statement" || type == "case_statement";
  const auto kids = children(node);
  for (std::size_t i = 0; i < kids.size(); ++i) {
    const TSNode child = kids[i].node;
    const std::string_view branch = ts_node_type(child);
    if (one_of_several && (branch == "elif_clause" || branch == "else_clause" || branch == "case_item")) variables_.forget(node);
    std::optional<Restored> background;
    if (i + 1 < kids.size() && raw(kids[i + 1].node) == "&") background.emplace(place);
    statement(child);
    if (kind(child) != Kind::kToken) settle();
  }
  if (!sure) variables_.forget(node);
}

// `exit 1`, `return`: what comes behind `a || exit` runs only where a went well.
bool ends_shell(std::string_view text) noexcept {
  return text == "exit" || text == "return" || text.starts_with("exit ") || text.starts_with("return ");
}

// `a && b && c`: where c runs, b has run; behind the chain, or behind `||`, nobody knows.
void Reader::chain(TSNode node, std::vector<TSNode>& doubtful) {
  const Deeper deeper(depth_);
  if (full(node)) return;
  const auto kids = children(node);
  const bool all = std::ranges::none_of(kids, [&](const Child& child) { return raw(child.node) == "||"; });
  const bool ends = !kids.empty() && ends_shell(raw(kids.back().node));
  bool first = true;
  for (const Child& child : kids) {
    const Place before = place;
    if (!first && !all) {  // behind `||`
      if (ends) place.failed.clear();
      else settle();
    }
    if (first && all && std::string_view(ts_node_type(child.node)) == "list") chain(child.node, doubtful);
    else statement(child.node);
    const bool may_run = !first && kind(child.node) != Kind::kToken;
    if (may_run) left(before);
    if (may_run && all) doubtful.push_back(child.node);
    else if (may_run) variables_.forget(node);  // behind `a || b`, also in `a || b && c`
    first = false;
  }
}

void Reader::expression(TSNode node) {
  const Deeper deeper(depth_);
  if (full(node)) return;
  if (kind(node) == Kind::kSubstitution) {
    substitutions_.push_back(ts_node_start_byte(node));
    if (without_blanks(raw(node)).starts_with("$((")) doubt(node);  // arithmetic to the shell
    const Inside label(inside, "substitution");
    const Restored outside_place(place);
    auto outside = std::exchange(upstream, {});
    statements(node);
    variables_.forget(node);
    upstream = std::move(outside);
    return;
  }
  if (kind(node) == Kind::kRedirected || kind(node) == Kind::kCommand)
    return statement(node);  // `[[ a < b ]]` as the grammar sees it
  if (kind(node) == Kind::kParameter) parameter(node);
  for (const Child& child : children(node)) {
    if (kind(child.node) == Kind::kOther && ts_node_child_count(child.node) > 0)
      unread(span(child.node), "the shell's grammar does not cover this");
    else if (ts_node_child_count(child.node) > 0) expression(child.node);
    // What a[...] and $((...)) hold is evaluated, and `[x]=` at the front of an array's element.
    if (kind(child.node) == Kind::kToken) continue;
    const bool index = kind(node) == Kind::kSubscript && ts_node_start_byte(child.node) > ts_node_start_byte(node);
    if (kind(node) == Kind::kArithmetic || (index && raw(child.node) != "@" && raw(child.node) != "*")) evaluated(child.node);
  }
}

// ${x@P} expands what x holds like a prompt, ${!x} what it names, ${x:=y} assigns, ${x:y:z} evaluates y and z.
void Reader::parameter(TSNode node) {
  const std::string_view text = without_blanks(raw(node));
  const auto names = [&](std::string_view ending) {  // ${!x@}, ${!x[@]}: names and subscripts, which run nothing
    return text.ends_with(ending) && text.size() > 3 + ending.size() && is_name(text.substr(3, text.size() - 3 - ending.size()));
  };
  if (text.ends_with("@P}") || text.find("\\\n") != std::string_view::npos) return doubt(node);
  if (text.starts_with("${!") && !names("@}") && !names("*}") && !names("[@]}") && !names("[*]}")) return doubt(node);
  std::string_view name;
  bool offset = false;
  for (const Child& child : children(node)) {
    const std::string_view letters = raw(child.node);
    if (kind(child.node) == Kind::kToken) {
      offset = offset || letters == ":";
      if (letters == "=" || letters == ":=") numbers_.assign(name, false);
    } else if (offset) {
      evaluated(child.node);
    } else if (name.empty()) {
      name = letters.substr(0, letters.find('['));
    }
  }
}

// --- arithmetic and tests --------------------------------------------------------------------------------------------------------

// `node` is evaluated: numbers, names that hold numbers for sure, and operators between them.
void Reader::evaluated(TSNode node) {
  const Deeper deeper(depth_);
  if (full(node) || is_number(node)) return;
  std::string_view text = without_blanks(raw(node));
  if (kind(node) != Kind::kOperation && text.starts_with('$')) {
    text.remove_prefix(1);
    if (text.starts_with('{') && text.ends_with('}')) text = text.substr(1, text.size() - 2);
    return is_name(text) ? numbers_.evaluate(text, span(node)) : doubt(node);
  }
  if (ts_node_child_count(node) == 0) return evaluated_letters(node);
  switch (kind(node)) {
    case Kind::kOperation:
    case Kind::kString:
    case Kind::kAssignment: {
      std::uint32_t end = UINT32_MAX;  // of the piece before: `a$i` is one name
      for (const Child& child : children(node)) {
        if (kind(child.node) == Kind::kToken) continue;
        if (ts_node_start_byte(child.node) == end) return doubt(node);
        end = ts_node_end_byte(child.node);
        evaluated(child.node);
      }
      return;
    }
    default:
      doubt(node);
  }
}

void Reader::evaluated_letters(TSNode node) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789#";
  constexpr std::string_view kOperators = "+-*/%<>=!&|^~?:,() \t\n";
  std::string_view rest = raw(node);
  while (!rest.empty()) {
    const std::size_t length = std::min(rest.find_first_not_of(kLetters), rest.size());
    const std::string_view name = rest.substr(0, length);
    if (is_name(name)) numbers_.evaluate(name, span(node));
    else if (length == 0 ? kOperators.find(rest[0]) == std::string_view::npos : !is_integer(name.substr(0, 1))) return doubt(node);
    rest.remove_prefix(std::max<std::size_t>(length, 1));
  }
}

void Reader::test_pieces(TSNode node, std::vector<TSNode>& pieces) {
  const Deeper deeper(depth_);
  if (full(node)) return;
  for (const Child& child : children(node)) {
    if (kind(child.node) == Kind::kOperation) test_pieces(child.node, pieces);
    else pieces.push_back(child.node);
  }
}

// The word as `test` looks at it: what is a number for sure cannot become an operator.
Word Reader::test_word(TSNode node, const Word& word) {
  const std::string_view text = raw(node);
  if (!is_number(node)) {
    if (!word.splits || !text.starts_with('$') || !is_name(text.substr(1))) return word;
    numbers_.evaluate(text.substr(1), span(node));
  }
  return {.text = "0"};
}

void Reader::test(TSNode node) {
  std::vector<TSNode> pieces;
  test_pieces(node, pieces);
  if (raw(node).starts_with("((")) {
    for (const TSNode piece : pieces) {
      if (kind(piece) != Kind::kToken) evaluated(piece);
    }
    return expression(node);
  }
  if (!raw(node).starts_with("[[")) {
    std::vector<Word> words;
    for (const TSNode piece : pieces) {
      if (is_word(kind(piece))) {
        words.push_back(test_word(piece, word(piece)));
      } else {
        words.push_back({.text = std::string(raw(piece))});
        if (ts_node_child_count(piece) > 0) statement(piece);
      }
    }
    return looks_up_subscript(words) ? doubt(node) : void();
  }
  constexpr std::string_view kArithmetic[] = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"};
  for (std::size_t i = 1; i + 1 < pieces.size(); ++i) {
    const std::string_view text = raw(pieces[i]);
    if (text == "-v" && !is_name(raw(pieces[i + 1]))) doubt(pieces[i + 1]);
    if (std::ranges::find(kArithmetic, text) == std::end(kArithmetic)) continue;
    evaluated(pieces[i - 1]);
    evaluated(pieces[i + 1]);
  }
  expression(node);
}

// `for i in 1 2 {3..5}`
bool Reader::loops_over_numbers(const std::vector<Child>& kids) const noexcept {
  const auto is_value = [&](const Child& child) { return is_word(kind(child.node)); };
  constexpr std::string_view kNumbers = "0123456789{}.,";
  return std::ranges::any_of(kids, is_value) && std::ranges::all_of(kids, [&](const Child& child) {
           return !is_value(child) || raw(child.node).find_first_not_of(kNumbers) == std::string_view::npos;
         });
}

// {1..3}
bool is_number_range(std::string_view text) noexcept {
  const std::size_t dots = text.find("..");
  return text.size() > 5 && text.starts_with('{') && text.ends_with('}') && dots != std::string_view::npos && dots > 1 &&
         text.find_first_not_of("0123456789.{}") == std::string_view::npos && text.rfind('{') == 0;
}

void Reader::loop(TSNode node) {
  const Inside label(inside, "loop");
  const Restored outside_place(place);
  const auto kids = children(node);
  const bool counts = std::ranges::any_of(kids, [&](const Child& child) { return raw(child.node) == "(("; });
  std::string_view name;
  std::vector<Word> values;
  variables_.forget(node);
  for (const Child& child : kids) {
    if (counts && (is_word(kind(child.node)) || kind(child.node) == Kind::kAssignment)) evaluated(child.node);
    if (child.field == "variable") {  // `for PATH in ...` sets it like any assignment
      name = raw(child.node);
      numbers_.assign(name, loops_over_numbers(kids));
      if (is_integer_variable(name) && !loops_over_numbers(kids)) doubt(child.node);
      Part part{.inside = inside, .span = span(child.node)};
      part.assignments.push_back({std::string(name), {.fixed = false, .span = span(child.node)}});
      emit(std::move(part));
    } else if (!name.empty() && is_word(kind(child.node))) {
      values.push_back(word(child.node));
      if (is_number_range(raw(child.node))) values.back().bounded = true;  // a number, whichever
    } else if (child.field == "body") {
      rounds(child.node, name, values);
    } else {
      statement(child.node);
    }
  }
  variables_.forget(node);
}

// The body once for each value that is known, as if it were written out; otherwise once for whatever the run gives.
void Reader::rounds(TSNode body, std::string_view name, const std::vector<Word>& values) {
  constexpr std::size_t kMaxValues = 16;
  constexpr int kMaxRounds = 64;
  const bool known = !values.empty() && values.size() <= kMaxValues && variables_.follows(name) &&
                     rounds_ + static_cast<int>(values.size()) <= kMaxRounds && std::ranges::all_of(values, [](const Word& value) {
                       return value.fixed || (value.pattern && !value.expands) || (value.bounded && value.text.empty());
                     });
  if (!known) return statement(body);
  for (const Word& value : values) {
    ++rounds_;
    variables_.assign(name, value);
    statement(body);
    variables_.forget(body);
  }
}

void Reader::pipeline(TSNode node) {
  const auto before = upstream;
  const std::size_t first = out_.parts.size();
  for (const Child& child : children(node)) {
    if (kind(child.node) == Kind::kToken) continue;
    const Restored outside_place(place);
    statement(child.node);
    variables_.forget(child.node);
    // One range for all that came before: parts are written in order.
    upstream.resize(before.size());
    if (out_.parts.size() > first) upstream.push_back({first, out_.parts.size()});
  }
  upstream = before;
}

void Reader::redirected(TSNode node) {
  std::vector<Redirect> redirects;
  std::vector<Word> more;  // words of the command that stand behind a redirection
  std::vector<TSNode> behind;
  const TSNode* body = nullptr;
  const auto kids = children(node);
  for (const Child& child : kids) {
    switch (kind(child.node)) {
      case Kind::kFileRedirect:
        redirect(child.node, redirects, more);
        break;
      case Kind::kHereDoc:
        here_document(child.node, redirects, more, behind);
        break;
      case Kind::kHereString:
        here_string(child.node, redirects);
        break;
      default:
        if (body != nullptr) unread(span(child.node), "the shell's grammar does not cover this");
        body = &child.node;
    }
  }
  const std::size_t first = out_.parts.size();
  const bool simple = body != nullptr && kind(*body) == Kind::kCommand;
  if (simple) {
    command(*body, std::move(redirects), std::move(more));
  } else {
    // The redirections of a group: a part of their own, before what they hold.
    Part part{
        .argv = std::move(more), .redirects = std::move(redirects), .upstream = upstream, .inside = inside, .span = span(node)};
    emit(std::move(part));
    const auto before = upstream;
    upstream.push_back({first, out_.parts.size()});
    if (body != nullptr) statement(*body);
    upstream = before;
  }
  // What the grammar hangs on a here-document: `cat <<E | sh`, `cat <<E && x`.
  const auto before = upstream;
  for (const TSNode next : behind) {
    upstream.push_back({first, out_.parts.size()});
    statement(next);
    variables_.forget(next);
  }
  upstream = before;
}

void Reader::function(TSNode node) {
  auto values = variables_.suspend();
  const Restored outside_place(place);
  std::string name;
  std::vector<Redirect> redirects;
  std::vector<Word> more;
  for (const Child& child : children(node)) {
    if (child.field == "name") {
      name = raw(child.node);
    } else if (child.field == "redirect" && kind(child.node) == Kind::kFileRedirect) {
      redirect(child.node, redirects, more);
      emit({.redirects = std::move(redirects), .inside = inside, .span = span(child.node)});
      redirects.clear();
    } else if (kind(child.node) != Kind::kToken) {
      const Inside label(inside, "function " + name);
      statement(child.node);
    }
  }
  variables_.resume(std::move(values));
}

// export A=1 B: a command whose arguments may be assignments.
void Reader::declaration(TSNode node) {
  Part part{.upstream = upstream, .inside = inside, .span = span(node)};
  for (const Child& child : children(node)) {
    if (kind(child.node) == Kind::kAssignment) {
      part.assignments.push_back(assignment(child.node));
    } else if (kind(child.node) == Kind::kToken || kind(child.node) == Kind::kName) {
      part.argv.push_back({.text = std::string(raw(child.node)), .span = span(child.node)});
    } else {
      part.argv.push_back(word(child.node));
    }
  }
  const bool options = std::any_of(part.argv.begin() + !part.argv.empty(), part.argv.end(),
                                   [](const Word& word) { return !word.fixed || word.text.starts_with('-'); });
  for (const Assignment& assignment : part.assignments) {
    if (options) numbers_.assign(assignment.name, false);  // `declare -n i=x`: another variable's value
    variables_.assign(assignment.name, assignment.value);
  }
  emit(std::move(part));
}

void Reader::command(TSNode node, std::vector<Redirect> redirects, std::vector<Word> more) {
  const auto kids = children(node);
  if (kids.size() == 1 && redirects.empty() && more.empty() && raw(node).starts_with("((")) {  // `if ((i < 3))`
    for (const Child& name : children(kids[0].node)) expression(name.node);
    return;
  }
  Part part{.upstream = upstream, .inside = inside, .span = span(node)};
  std::vector<Redirect> own;
  std::vector<Word> late;
  std::vector<Word> tested{{}};  // `test` and its arguments
  bool is_test = false;
  for (const Child& child : kids) {
    switch (kind(child.node)) {
      case Kind::kAssignment:
        part.assignments.push_back(assignment(child.node));
        break;
      case Kind::kFileRedirect:
        redirect(child.node, own, late);
        break;
      case Kind::kHereString:
        here_string(child.node, own);
        break;
      case Kind::kCommandName:
        if (is_reserved(raw(child.node)))
          unread(span(child.node), "the grammar takes a word of the shell's own grammar for a command");
        for (const Child& name : children(child.node)) part.argv.push_back(word(name.node));
        is_test = program_name(part) == "test" || program_name(part) == "[";
        break;
      case Kind::kToken:  // a lone `$`, `==`
        part.argv.push_back({.text = std::string(raw(child.node)), .span = span(child.node)});
        break;
      case Kind::kComment:
        break;
      default:
        if (is_word(kind(child.node))) {
          part.argv.push_back(word(child.node));
          if (is_test) tested.push_back(test_word(child.node, part.argv.back()));
          break;
        }
        unread(span(child.node), "the shell's grammar does not cover this");
    }
  }
  if (looks_up_subscript(tested)) doubt(node);
  if (!late.empty()) unread(part.span, "words stand between a redirection and the command");
  part.redirects = std::move(own);
  std::ranges::move(redirects, std::back_inserter(part.redirects));
  std::ranges::move(more, std::back_inserter(part.argv));
  const Part run = part;
  emit(std::move(part));
  move(run);
}

// --- redirections and assignments ------------------------------------------------------------------------------------------------

// `([x]=1)`: x is evaluated.
void Reader::array(TSNode node) {
  for (const Child& child : children(node)) {
    const std::string_view text = raw(child.node);
    const std::size_t end = text.find(']');
    if (text.starts_with('[') && end != std::string_view::npos && !is_integer(text.substr(1, end - 1))) doubt(child.node);
  }
}

Assignment Reader::assignment(TSNode node) {
  Assignment result;
  bool integer = true;   // `x=` is 0 to arithmetic
  bool appends = false;  // `x+=1` keeps what x holds
  for (const Child& child : children(node)) {
    appends = appends || raw(child.node) == "+=";
    if (child.field == "name") {
      result.name = raw(child.node).substr(0, raw(child.node).find('['));
      if (kind(child.node) == Kind::kSubscript) expression(child.node);
    } else if (child.field == "value") {
      result.value = word(child.node);
      integer = is_number(child.node) || (result.value.fixed && is_integer(result.value.text));
      if (kind(child.node) == Kind::kArray) array(child.node);
    }
  }
  if (!integer && is_integer_variable(result.name)) doubt(node);
  if (!integer || !appends) numbers_.assign(result.name, integer);
  return result;
}

// `{fd}<file`, `{a[x]}<file`: the shell evaluates the subscript. `${x}<file` and `{ a; }<file` are none.
bool names_descriptor(std::string_view before) noexcept {
  if (before.size() < 2 || !before.ends_with('}')) return false;
  const char last = before[before.size() - 2];
  if (last != ']' && !is_name(std::string("x") + last)) return false;
  const std::size_t open = before.rfind("${");
  return open == std::string_view::npos || !is_name("x" + std::string(before.substr(open + 2, before.size() - open - 3)));
}

void Reader::redirect(TSNode node, std::vector<Redirect>& redirects, std::vector<Word>& more) {
  Redirect result;
  bool has_target = false;
  if (names_descriptor(text_.substr(0, ts_node_start_byte(node)))) doubt(node);
  for (const Child& child : children(node)) {
    if (child.field == "descriptor") continue;
    if (kind(child.node) == Kind::kToken) {
      result.op = raw(child.node);
    } else if (!has_target) {
      result.target = word(child.node);
      has_target = true;
    } else {
      more.push_back(word(child.node));  // the grammar takes the command's next words for further targets
    }
  }
  redirects.push_back(std::move(result));
}

void Reader::here_string(TSNode node, std::vector<Redirect>& redirects) {
  Redirect result{.op = "<<<"};
  for (const Child& child : children(node)) {
    if (kind(child.node) != Kind::kToken && child.field != "descriptor") result.target = word(child.node);
  }
  redirects.push_back(std::move(result));
}

// The line that ends a here-document must be the first that equals the delimiter, or shell and grammar read it differently.
bool ends_where_the_shell_does(std::string_view body, std::string_view end, const std::string& delimiter, bool strip) {
  const auto line_is = [&](std::string_view line) {
    if (strip) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
    return line == delimiter;
  };
  while (!body.empty()) {
    const std::size_t newline = body.find('\n');
    // Of `<<-` the grammar leaves the tabs before the end in the body.
    if (newline == std::string_view::npos) return strip && body.find_first_not_of('\t') == std::string_view::npos && line_is(end);
    if (line_is(body.substr(0, newline))) return false;
    body.remove_prefix(newline + 1);
  }
  return line_is(end);
}

void Reader::here_document(TSNode node, std::vector<Redirect>& redirects, std::vector<Word>& more, std::vector<TSNode>& behind) {
  Redirect result{.op = "<<"};
  Word delimiter;
  bool literal = false;
  bool strip = false;
  std::string_view body;
  std::string_view end;
  for (const Child& child : children(node)) {
    const std::string_view type = ts_node_type(child.node);
    if (type == "<<-") {
      strip = true;
    } else if (type == "heredoc_start") {
      literal = raw(child.node).find_first_of("'\"\\") != std::string_view::npos;
      for (const char c : raw(child.node)) {
        if (std::string_view("'\"\\").find(c) == std::string_view::npos) delimiter.text += c;
      }
    } else if (type == "heredoc_body") {
      body = raw(child.node);
      result.target = here_body(child.node, literal, strip);
    } else if (type == "heredoc_end") {
      end = raw(child.node);
    } else if (kind(child.node) == Kind::kFileRedirect) {
      redirect(child.node, redirects, more);
    } else if (kind(child.node) == Kind::kHereString) {
      here_string(child.node, redirects);
    } else if (child.field == "argument") {
      more.push_back(word(child.node));
    } else if (kind(child.node) != Kind::kToken && child.field != "descriptor") {
      behind.push_back(child.node);
    }
  }
  // The grammar may leave blanks of the last line to the end marker.
  if (!ends_where_the_shell_does(body, end, delimiter.text, strip))
    unread(span(node), "shell and grammar disagree where a here-document ends");
  redirects.push_back(std::move(result));
}

Word Reader::here_body(TSNode node, bool literal, bool strip) {
  Word body{.span = span(node)};
  if (literal) {
    body.text = raw(node);
  } else {
    std::size_t at = ts_node_start_byte(node);
    for (const Child& child : children(node, false)) {
      if (std::string_view(ts_node_type(child.node)) == "heredoc_content") continue;
      add_double_quoted(body, between(at, ts_node_start_byte(child.node)));
      add_expansion(body, child.node, true);
      at = ts_node_end_byte(child.node);
    }
    add_double_quoted(body, between(at, ts_node_end_byte(node)));
  }
  if (!strip) return body;
  std::string stripped;
  bool at_start = true;
  for (const char c : body.text) {
    if (!(at_start && c == '\t')) stripped += c;
    at_start = c == '\n' || (at_start && c == '\t');
  }
  body.text = std::move(stripped);
  return body;
}

// --- words -----------------------------------------------------------------------------------------------------------------------

Word Reader::word(TSNode node) {
  Word result{.lead = std::string::npos, .bounded = true, .span = span(node)};
  const std::size_t first = out_.parts.size();
  const auto outside = std::exchange(borrowed_, std::nullopt);
  result.from.first = result.from.last = first;
  add_word(result, node);
  result.from.last = out_.parts.size();
  if (result.from.empty() && borrowed_) result.from = *borrowed_;
  borrowed_ = outside;
  result.lead = result.fixed ? 0 : std::min(result.lead, result.text.size());
  result.bounded = result.bounded && !result.fixed;
  if (!result.fixed) result.written = raw(node);
  return result;
}

void Reader::add_word(Word& word, TSNode node) {
  const Deeper deeper(depth_);
  if (full(node)) return add_dynamic(word, false);
  const std::string_view text = raw(node);
  switch (kind(node)) {
    case Kind::kName:
      word.text += text;
      return;
    case Kind::kWord:
      if (ts_node_child_count(node) > 0) return add_expansion(word, node, false);
      return add_bare(word, text);
    case Kind::kRawString:
      if (text.size() >= 2) word.text += text.substr(1, text.size() - 2);
      return;
    case Kind::kAnsiC:
      if (text.size() >= 3) add_ansi_c(word, text.substr(2, text.size() - 3));
      return;
    case Kind::kString:
      return add_string(word, node);
    case Kind::kConcatenation:
      return add_concatenation(word, node);
    default:
      if (is_word(kind(node))) return add_expansion(word, node, false);
      unread(span(node), "the shell's grammar does not cover this");
      add_dynamic(word, false);
  }
}

// From quote to quote by position: the grammar leaves some blanks out of its pieces.
void Reader::add_string(Word& word, TSNode node) {
  std::size_t at = ts_node_start_byte(node);
  std::size_t end = ts_node_end_byte(node);
  if (end < at + 2 || text_[at] != '"' || text_[end - 1] != '"') return add_dynamic(word, false);
  ++at;
  --end;
  TSTreeCursor cursor = ts_tree_cursor_new(node);
  for (bool more = ts_tree_cursor_goto_first_child(&cursor); more; more = ts_tree_cursor_goto_next_sibling(&cursor)) {
    const TSNode child = ts_tree_cursor_current_node(&cursor);
    if (kind(child) == Kind::kToken || std::string_view(ts_node_type(child)) == "string_content") continue;
    if (ts_node_start_byte(child) < at || ts_node_end_byte(child) > end) continue;
    add_double_quoted(word, between(at, ts_node_start_byte(child)));
    add_expansion(word, child, true);
    at = ts_node_end_byte(child);
  }
  ts_tree_cursor_delete(&cursor);
  add_double_quoted(word, between(at, end));
}

void Reader::add_expansion(Word& word, TSNode node, bool quoted) {
  const std::size_t first = out_.parts.size();
  // "$@" and "${a[@]}" become several words even in quotes.
  const std::string_view text = raw(node);
  if (add_value(word, text, quoted)) return expression(node);
  const bool home = word.text.empty() && (text == "$HOME" || text == "${HOME}");
  const std::size_t lead = word.lead;
  const bool bounded = word.bounded;
  if (home) word.text = "~";  // for the checks that look for a home
  add_dynamic(word, quoted && text.find('@') == std::string_view::npos);
  if (home) word.lead = lead;
  // The working directory stays where a relative name would be.
  const bool here = word.text.empty() && (text == "$PWD" || text == "${PWD}" || text == "$(pwd)");
  const bool number = is_number(node) || text == "$RANDOM" || text == "${RANDOM}";
  if (home || here || number) word.bounded = bounded;
  if (kind(node) == Kind::kOther) unread(span(node), "the shell's grammar does not cover this");
  else expression(node);
  if (out_.parts.size() > first && word.from.empty()) word.from = {first, out_.parts.size()};
  if (!word.from.empty()) word.from.last = out_.parts.size();
}

// `$x` and `${x}` where the text says what x holds: the value as it was written. False when only the run decides.
bool Reader::add_value(Word& word, std::string_view expansion, bool quoted) {
  constexpr std::string_view kOneWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:=+@%^-";
  std::string_view name = expansion.substr(std::min<std::size_t>(1, expansion.size()));
  if (name.starts_with('{') && name.ends_with('}')) name = name.substr(1, name.size() - 2);
  const Word* const value = expansion.starts_with('$') && is_name(name) ? variables_.find(name) : nullptr;
  if (value == nullptr) return false;
  const std::string_view text = value->text;
  const bool home = text == "~" || text.starts_with("~/");
  const bool stays_one =
      !text.empty() && text.find_first_not_of(kOneWord) == std::string_view::npos && variables_.splits_as_usual();
  if (!value->fixed && text.starts_with('~') && (!home || !word.text.empty())) return false;
  if (!quoted && !(value->fixed && stays_one) && !((home || text.empty()) && value->bounded)) return false;
  const std::size_t before = word.text.size();
  word.text += text;
  if (!value->from.empty() && !borrowed_) borrowed_ = value->from;
  if (value->fixed) return true;
  word.fixed = false;
  word.pattern = word.pattern || value->pattern;
  word.splits = word.splits || !quoted;
  if (value->pattern) return true;
  word.expands = word.expands || value->expands;
  word.opens = word.opens || (before == 0 && value->opens);
  word.bounded = word.bounded && value->bounded;
  word.lead = std::min(word.lead, value->lead < text.size() || !value->bounded ? before + value->lead : std::string::npos);
  return true;
}

void Reader::add_concatenation(Word& word, TSNode node) {
  bool brace = false;
  std::size_t end = ts_node_start_byte(node);
  for (const Child& child : children(node)) {
    if (ts_node_start_byte(child.node) != end && between(end, ts_node_start_byte(child.node)) != "\\\n") add_dynamic(word, false);
    end = ts_node_end_byte(child.node);
    if (kind(child.node) == Kind::kToken) {
      add_bare(word, raw(child.node));
      continue;
    }
    brace = brace || (kind(child.node) == Kind::kWord && raw(child.node).find('{') != std::string_view::npos);
    add_word(word, child.node);
  }
  const std::string_view text = raw(node);
  if (brace && (text.find(',') != std::string_view::npos || text.find("..") != std::string_view::npos)) {
    word.pattern = word.splits = true;
    word.fixed = false;
  }
}

// --- parts and what they start ---------------------------------------------------------------------------------------------------

// Of several that could read it, the run decides which does.
void Reader::give_input(Part& part) {
  if (input.empty() || !part.upstream.empty()) return;
  if (std::ranges::any_of(part.redirects, [](const Redirect& redirect) { return redirect.op.starts_with("<"); })) return;
  if (input.size() > kMaxInput / (out_.parts.size() + 1)) return unread(part.span, "its standard input is larger than is judged");
  part.redirects.push_back({.op = "<<", .target = {.text = std::string(input), .span = part.span}});
}

void Reader::emit(Part part) {
  if (out_.parts.size() >= kMaxParts) {
    if (out_.unread.size() < kMaxParts) unread(part.span, "the text has more commands than are judged");
    return;
  }
  give_input(part);
  part.directory = place.directory;
  part.perhaps = place.perhaps;
  // Substitutions of the part's words come before it: they run first.
  out_.parts.push_back(std::move(part));
  const Part copy = out_.parts.back();
  open(copy, opened);
}

void Reader::open(const Part& part, int level) {
  const std::size_t index = out_.parts.size() - 1;
  Opening opening = open_wrapper(part);
  if (reads_script_from_stdin(part)) {
    for (const Redirect& redirect : part.redirects) {
      if (redirect.op.starts_with("<<"))
        opening.opened.push_back(
            {.kind = Opened::Kind::kScript, .label = std::string(program_name(part)) + " <<", .script = redirect.target});
    }
  }
  if (opening.opened.empty()) return;
  if (level >= kMaxOpened) return unread(part.span, "commands start commands deeper than is judged");
  out_.parts[index].starts_more = opening.transparent;
  for (Opened& what : opening.opened) {
    if (out_.parts.size() >= kMaxParts) return unread(part.span, "the text has more commands than are judged");
    if (what.kind == Opened::Kind::kUnread) {
      unread(part.span, what.label);
    } else if (what.kind == Opened::Kind::kScript) {
      open_script(what.script, part, what.label, level + 1);
    } else {
      Part inner{.argv = std::move(what.argv),
                 .assignments = std::move(what.assignments),
                 .upstream = part.upstream,
                 .inside = part.inside,
                 .span = part.span,
                 .directory = what.directory ? directory_behind(part.directory, *what.directory) : part.directory};
      for (const std::string& each : part.perhaps)
        add_places(inner.perhaps, {what.directory ? directory_behind(each, *what.directory) : each});
      inner.inside.push_back(what.label);
      const std::string_view name = program_name(inner);
      if ((name == "test" || name == "[") && looks_up_subscript(inner.argv))
        unread(inner.span, "the shell evaluates a text that only the run decides");
      for (const Redirect& redirect : part.redirects) {
        if (redirect.op.starts_with("<<")) inner.redirects.push_back(redirect);
      }
      out_.parts.push_back(inner);
      open(inner, level + 1);
    }
  }
}

// Of the text that `part` runs.
Dialect dialect_of(const Part& part, Dialect here) noexcept {
  constexpr std::string_view kHere[] = {"eval", "trap", "alias", ".", "source"};
  const std::string_view name = program_name(part);
  if (std::ranges::find(kHere, name) != std::end(kHere)) return here;
  return name == "bash" || name == "rbash" ? Dialect::kBash : Dialect::kAnyShell;
}

bool may_have_functions(std::string_view text) noexcept {
  if (text.find("function") != std::string_view::npos) return true;
  for (std::size_t at = text.find('('); at != std::string_view::npos; at = text.find('(', at + 1)) {
    const std::size_t next = text.find_first_not_of(" \t", at + 1);
    if (next == std::string_view::npos || text[next] == ')') return true;
  }
  return false;
}

void Reader::open_script(const Word& script, const Part& part, const std::string& label, int level) {
  if (!script.fixed) return unread(script.span, format("`{}` gets a text that only the run decides", label));
  // `eval` and `trap` run in this shell and may assign what they like.
  if (!is_shell(program_name(part)) && !label.ends_with("-c")) numbers_.doubt_all();
  Reader reader(grammar_, out_, script.text);
  reader.deadline = deadline;
  reader.inside = part.inside;
  reader.inside.push_back(label);
  reader.place = {.directory = part.directory, .perhaps = part.perhaps, .failed = {}};
  reader.upstream = part.upstream;
  reader.outer = &script.span;
  reader.opened = level;
  reader.dialect = dialect_of(part, dialect);
  // Only a shell of its own, which inherits no function.
  reader.follows_variables = follows_variables && is_shell(program_name(part)) && !may_have_functions(text_);
  // A shell that takes its text from there leaves what it starts the rest of it: nothing that can be told apart.
  if (!label.ends_with(" <<")) reader.input = input;
  reader.read();
}

}  // namespace

ShellReader::ShellReader() : state_(std::make_unique<State>()) {}
ShellReader::~ShellReader() = default;
ShellReader::ShellReader(ShellReader&&) noexcept = default;
ShellReader& ShellReader::operator=(ShellReader&&) noexcept = default;

Script ShellReader::read(std::string_view text, std::string_view input) {
  Script script;
  Reader reader(state_->grammar, script, text);
  reader.input = input;
  reader.read();
  return script;
}

std::string_view program_name(const Part& part) noexcept {
  if (part.argv.empty() || !part.argv[0].fixed) return {};
  const std::string_view text = part.argv[0].text;
  return text.substr(text.rfind('/') + 1);
}

std::string shown(const Word& word) {
  if (word.fixed) return word.text;
  return word.written.empty() ? word.text + "..." : word.written;
}

bool is_process(const Word& word) noexcept {
  const std::string_view text = word.written;
  if (!word.text.empty() || !(text.starts_with(">(") || text.starts_with("<("))) return false;
  int depth = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    else if (text[i] == ')' && --depth == 0) return i + 1 == text.size();
  }
  return false;
}

std::string to_line(const Part& part) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%^~*?[]{}";
  std::string line;
  for (const Assignment& assignment : part.assignments) line += assignment.name + "=" + shown(assignment.value) + " ";
  for (const Word& word : part.argv) {
    const bool plain = !word.fixed || (!word.text.empty() && word.text.find_first_not_of(kPlain) == std::string::npos);
    line += (plain ? shown(word) : "'" + word.text + "'") + " ";
  }
  for (const Redirect& redirect : part.redirects)
    line += redirect.op + (is_process(redirect.target) ? " " : "") + (redirect.op == "<<" ? "..." : shown(redirect.target)) + " ";
  if (!line.empty()) line.pop_back();
  return line;
}

}  // namespace belljar::guard
