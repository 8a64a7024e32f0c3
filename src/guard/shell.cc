#include "guard/shell.h"

#include <algorithm>

#include "base/format.h"
#include "guard/grammar.h"
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

// Reads one text; a wrapper with a script of its own makes another Reader that writes to the same Script.
class Reader {
 public:
  Reader(Grammar& grammar, Script& out, std::string_view text) : grammar_(grammar), out_(out), text_(text) {}

  void read();

  std::vector<std::string> inside;
  std::vector<Range> upstream;
  const Span* outer = nullptr;
  int opened = 0;
  std::string_view input;

 private:
  Kind kind(TSNode node) const noexcept { return grammar_.kind(node); }
  Span span(TSNode node) const noexcept {
    return outer != nullptr ? *outer : Span{ts_node_start_byte(node), ts_node_end_byte(node)};
  }
  std::string_view raw(TSNode node) const noexcept { return between(ts_node_start_byte(node), ts_node_end_byte(node)); }
  std::string_view between(std::size_t begin, std::size_t end) const noexcept { return text_.substr(begin, end - begin); }
  void unread(Span where, std::string reason) { out_.unread.push_back({std::move(reason), where}); }
  bool full(TSNode node);
  std::vector<Child> children(TSNode node, bool blank_between = true);

  void statement(TSNode node);
  void statements(TSNode node);
  void loop(TSNode node);
  void pipeline(TSNode node);
  void redirected(TSNode node);
  void function(TSNode node);
  void declaration(TSNode node);
  void command(TSNode node, std::vector<Redirect> redirects, std::vector<Word> more);
  void expression(TSNode node);

  Assignment assignment(TSNode node);
  void redirect(TSNode node, std::vector<Redirect>& redirects, std::vector<Word>& more);
  void here_document(TSNode node, std::vector<Redirect>& redirects, std::vector<Word>& more, std::vector<TSNode>& behind);
  Word here_body(TSNode node, bool literal, bool strip);
  void here_string(TSNode node, std::vector<Redirect>& redirects);

  Word word(TSNode node);
  void add_word(Word& word, TSNode node);
  void add_string(Word& word, TSNode node);
  void add_expansion(Word& word, TSNode node, bool quoted);
  void add_concatenation(Word& word, TSNode node);

  void give_input(Part& part);
  void emit(Part part);
  void open(const Part& part, int level);
  void open_script(const Word& script, const Part& part, const std::string& label, int level);

  Grammar& grammar_;
  Script& out_;
  std::string_view text_;
  int depth_ = 0;
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

void Reader::read() {
  if (const char* reason = unreadable(text_)) {
    const auto end = static_cast<std::uint32_t>(std::min<std::size_t>(text_.size(), UINT32_MAX));
    unread(outer != nullptr ? *outer : Span{0, end}, reason);
    return;
  }
  TSTree* tree = grammar_.parse(text_);
  if (tree == nullptr) {
    unread(outer != nullptr ? *outer : Span{0, static_cast<std::uint32_t>(text_.size())}, "the text takes too long to parse");
    return;
  }
  const TSNode root = ts_tree_root_node(tree);
  // The root spans what it holds; what lies around it must be blank too.
  const bool placed = kind(root) == Kind::kGroup && is_blank(between(0, ts_node_start_byte(root))) &&
                      is_blank(between(ts_node_end_byte(root), text_.size()));
  if (!placed) unread(span(root), "the shell's grammar does not cover this");
  else statements(root);
  ts_tree_delete(tree);
}

bool Reader::full(TSNode node) {
  const bool deep = depth_ > kMaxDepth;
  if (!deep && out_.parts.size() < kMaxParts) return false;
  if (out_.unread.size() < kMaxParts)
    unread(span(node), deep ? "the text nests deeper than is judged" : "the text has more commands than are judged");
  return true;
}

// In the order written; what stands between them must be blank, and what the grammar could not place is unread.
std::vector<Child> Reader::children(TSNode node, bool blank_between) {
  std::vector<Child> found;
  TSTreeCursor cursor = ts_tree_cursor_new(node);
  std::uint32_t end = ts_node_start_byte(node);
  bool more = ts_tree_cursor_goto_first_child(&cursor);
  for (; more; more = ts_tree_cursor_goto_next_sibling(&cursor)) {
    const TSNode child = ts_tree_cursor_current_node(&cursor);
    const char* field = ts_tree_cursor_current_field_name(&cursor);
    const std::uint32_t begin = ts_node_start_byte(child);
    if (blank_between && begin > end && !is_blank(between(end, begin)))
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
      return statements(node);
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
      return emit(std::move(part));
    }
    case Kind::kTest:
    case Kind::kName:
      return expression(node);
    default:
      // `for x in WORDS`, `case WORD in`, `[ ... ]`: only their substitutions run anything
      if (is_word(kind(node))) return expression(node);
      unread(span(node), "the shell's grammar does not cover this");
  }
}

void Reader::statements(TSNode node) {
  for (const Child& child : children(node)) statement(child.node);
}

void Reader::expression(TSNode node) {
  const Deeper deeper(depth_);
  if (full(node)) return;
  if (kind(node) == Kind::kSubstitution) {
    const Inside label(inside, "substitution");
    auto outside = std::exchange(upstream, {});
    statements(node);
    upstream = std::move(outside);
    return;
  }
  if (kind(node) == Kind::kRedirected || kind(node) == Kind::kCommand)
    return statement(node);  // `[[ a < b ]]` as the grammar sees it
  for (const Child& child : children(node)) {
    if (kind(child.node) == Kind::kOther && ts_node_child_count(child.node) > 0)
      unread(span(child.node), "the shell's grammar does not cover this");
    else if (ts_node_child_count(child.node) > 0) expression(child.node);
  }
}

void Reader::loop(TSNode node) {
  const Inside label(inside, "loop");
  for (const Child& child : children(node)) {
    if (child.field == "variable") {  // `for PATH in ...` sets it like any assignment
      Part part{.inside = inside, .span = span(child.node)};
      part.assignments.push_back({std::string(raw(child.node)), {.fixed = false, .span = span(child.node)}});
      emit(std::move(part));
    } else {
      statement(child.node);
    }
  }
}

void Reader::pipeline(TSNode node) {
  const auto before = upstream;
  const std::size_t first = out_.parts.size();
  for (const Child& child : children(node)) {
    if (kind(child.node) == Kind::kToken) continue;
    statement(child.node);
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
  }
  upstream = before;
}

void Reader::function(TSNode node) {
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
  emit(std::move(part));
}

void Reader::command(TSNode node, std::vector<Redirect> redirects, std::vector<Word> more) {
  Part part{.upstream = upstream, .inside = inside, .span = span(node)};
  std::vector<Redirect> own;
  std::vector<Word> late;
  std::vector<TSNode> behind;
  for (const Child& child : children(node)) {
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
        for (const Child& name : children(child.node)) part.argv.push_back(word(name.node));
        break;
      case Kind::kToken:  // a lone `$`, `==`
        part.argv.push_back({.text = std::string(raw(child.node)), .span = span(child.node)});
        break;
      case Kind::kComment:
        break;
      default:
        if (is_word(kind(child.node))) {
          part.argv.push_back(word(child.node));
          break;
        }
        unread(span(child.node), "the shell's grammar does not cover this");
    }
  }
  if (!late.empty()) unread(part.span, "words stand between a redirection and the command");
  part.redirects = std::move(own);
  std::ranges::move(redirects, std::back_inserter(part.redirects));
  std::ranges::move(more, std::back_inserter(part.argv));
  emit(std::move(part));
}

// --- redirections and assignments ------------------------------------------------------------------------------------------------

Assignment Reader::assignment(TSNode node) {
  Assignment result;
  for (const Child& child : children(node)) {
    if (child.field == "name") {
      result.name = raw(child.node).substr(0, raw(child.node).find('['));
      if (kind(child.node) == Kind::kExpansion) expression(child.node);
    } else if (child.field == "value") {
      result.value = word(child.node);
    }
  }
  return result;
}

void Reader::redirect(TSNode node, std::vector<Redirect>& redirects, std::vector<Word>& more) {
  Redirect result;
  bool has_target = false;
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
    if (newline == std::string_view::npos) return false;
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
  Word result{.span = span(node)};
  const std::size_t first = out_.parts.size();
  result.from.first = result.from.last = first;
  add_word(result, node);
  result.from.last = out_.parts.size();
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
    case Kind::kExpansion:
    case Kind::kSubstitution:
      return add_expansion(word, node, false);
    default:
      unread(span(node), "the shell's grammar does not cover this");
      add_dynamic(word, false);
  }
}

// From quote to quote by position: the grammar leaves some blanks out of its pieces.
void Reader::add_string(Word& word, TSNode node) {
  std::size_t at = ts_node_start_byte(node);
  std::size_t end = ts_node_end_byte(node);
  if (at < end && text_[at] == '$') ++at;
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
  if (word.text.empty() && (text == "$HOME" || text == "${HOME}")) word.text = "~";  // for the checks that look for a home
  add_dynamic(word, quoted && text.find('@') == std::string_view::npos);
  if (kind(node) == Kind::kOther) unread(span(node), "the shell's grammar does not cover this");
  else expression(node);
  if (out_.parts.size() > first && word.from.empty()) word.from = {first, out_.parts.size()};
  if (!word.from.empty()) word.from.last = out_.parts.size();
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
                 .span = part.span};
      inner.inside.push_back(what.label);
      for (const Redirect& redirect : part.redirects) {
        if (redirect.op.starts_with("<<")) inner.redirects.push_back(redirect);
      }
      out_.parts.push_back(inner);
      open(inner, level + 1);
    }
  }
}

void Reader::open_script(const Word& script, const Part& part, const std::string& label, int level) {
  if (!script.fixed) return unread(script.span, format("`{}` gets a text that only the run decides", label));
  Reader reader(grammar_, out_, script.text);
  reader.inside = part.inside;
  reader.inside.push_back(label);
  reader.upstream = part.upstream;
  reader.outer = &script.span;
  reader.opened = level;
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

std::string to_line(const Part& part) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%^~*?[]{}";
  std::string line;
  for (const Assignment& assignment : part.assignments)
    line += assignment.name + "=" + assignment.value.text + (assignment.value.fixed ? " " : "... ");
  for (const Word& word : part.argv) {
    const bool plain = word.text.find_first_not_of(kPlain) == std::string::npos && (!word.text.empty() || !word.fixed);
    line += plain ? word.text : "'" + word.text + "'";
    line += !word.fixed && !word.pattern && !word.text.starts_with('~') ? "... " : " ";
  }
  for (const Redirect& redirect : part.redirects) line += redirect.op + (redirect.op == "<<" ? "... " : redirect.target.text + " ");
  if (!line.empty()) line.pop_back();
  return line;
}

}  // namespace belljar::guard
