// The only file of this room that includes nlohmann-json.
//
// Its SAX interface tells no positions. But the lexer reads through an iterator of ours that counts, and when a callback runs, the
// last token read is the one it tells of: that token starts at the first byte after the previous one that is no white space and no
// punctuation between values.
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "policy/document.h"

namespace belljar::policy {
namespace {

// Counts the bytes the lexer has taken.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(std::string_view text, std::size_t at, std::size_t* taken) : text_(text), at_(at), taken_(taken) {}
  reference operator*() const { return text_[at_]; }
  CountingIterator& operator++() {
    ++at_;
    *taken_ = at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  std::string_view text_;
  std::size_t at_;
  std::size_t* taken_;
};

class Handler {
 public:
  using json = nlohmann::json;
  Handler(const Source& source, const std::size_t* taken) : source_(source), taken_(taken) {}

  bool null() { return add(make(Node::Kind::kNull)); }
  bool boolean(bool value) {
    Node node = make(Node::Kind::kBool);
    node.flag = value;
    return add(std::move(node));
  }
  bool number_integer(json::number_integer_t value) {
    Node node = make(Node::Kind::kInteger);
    node.integer = value;
    return add(std::move(node));
  }
  bool number_unsigned(json::number_unsigned_t value) {
    if (value > static_cast<json::number_unsigned_t>(INT64_MAX)) return number_float(static_cast<double>(value), {});
    return number_integer(static_cast<json::number_integer_t>(value));
  }
  bool number_float(json::number_float_t value, const std::string& /*spelling*/) {
    Node node = make(Node::Kind::kFloat);
    node.number = value;
    return add(std::move(node));
  }
  bool string(std::string& value) {
    Node node = make(Node::Kind::kText);
    node.text = std::move(value);
    return add(std::move(node));
  }
  bool binary(json::binary_t& /*value*/) { return false; }  // not in JSON text
  bool start_object(std::size_t /*size*/) { return open(Node::Kind::kTable); }
  bool start_array(std::size_t /*size*/) { return open(Node::Kind::kList); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    const Position at = token();
    if (stack_.back().members.size() >= kMaxElements) return too_many(at, format("more than {} keys", kMaxElements));
    for (const Member& member : stack_.back().members) {
      if (member.key == name) {
        error_ = error_at(source_, at, format("key {} is given twice", belljar::quoted(name)))
                     .reason(format("first on line {}", member.at.line));
        return false;
      }
    }
    stack_.back().members.push_back({std::move(name), at, {}});
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/, const json::exception& exception) {
    std::string_view why = exception.what();
    if (const std::size_t colon = why.find(": "); colon != std::string_view::npos) why.remove_prefix(colon + 2);
    error_ = error_at(source_, place(position == 0 ? 0 : position - 1), "not valid JSON").reason(escaped(why));
    return false;
  }

  Result<Node> finish() {
    if (error_) return *std::move(error_);
    return std::move(root_);
  }

 private:
  // Line and column of a byte. Positions only grow, so counting goes on from the last one.
  Position place(std::size_t offset) {
    if (offset < counted_) counted_ = 0, counted_at_ = {1, 1};
    for (; counted_ < offset && counted_ < source_.text.size(); ++counted_) {
      const char c = source_.text[counted_];
      if (c == '\n') counted_at_ = {counted_at_.line + 1, 1};
      else if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80) ++counted_at_.column;
    }
    return counted_at_;
  }
  Position token() {
    const std::size_t start = source_.text.find_first_not_of(" \t\r\n,:]}\xEF\xBB\xBF", end_);
    end_ = *taken_;
    return place(start);
  }
  Node make(Node::Kind kind) {
    Node node;
    node.kind = kind;
    node.at = token();
    return node;
  }
  bool too_many(Position at, const std::string& what) {
    error_ = error_at(source_, at, what);
    return false;
  }
  bool open(Node::Kind kind) {
    Node node = make(kind);
    if (stack_.size() >= kMaxDepth) {
      error_ = error_at(source_, node.at, format("nested deeper than {} levels", kMaxDepth));
      return false;
    }
    stack_.push_back(std::move(node));
    return true;
  }
  bool close() {
    end_ = *taken_;
    Node node = std::move(stack_.back());
    stack_.pop_back();
    return add(std::move(node));
  }
  bool add(Node node) {
    if (++values_ > kMaxValues) return too_many(node.at, format("more than {} values", kMaxValues));
    if (stack_.empty()) root_ = std::move(node);
    else if (stack_.back().kind == Node::Kind::kTable) stack_.back().members.back().value = std::move(node);
    else stack_.back().items.push_back(std::move(node));
    return true;
  }

  Source source_;
  const std::size_t* taken_;
  std::size_t values_ = 0;
  std::size_t end_ = 0;  // where the previous token ended
  std::size_t counted_ = 0;
  Position counted_at_{1, 1};
  std::vector<Node> stack_;
  Node root_;
  std::optional<Error> error_;
};

}  // namespace

Result<Node> parse_json_document(const Source& source) {
  BELLJAR_CHECK(check_text(source));
  std::size_t taken = 0;
  Handler handler(source, &taken);
  nlohmann::json::sax_parse(CountingIterator(source.text, 0, &taken), CountingIterator(source.text, source.text.size(), &taken),
                            &handler);
  return handler.finish();
}

}  // namespace belljar::policy
